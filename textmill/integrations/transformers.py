"""The guard as a callback of `transformers.Trainer`, and the order as its sampler.

    guard = CollapseGuard()
    trainer = Trainer(..., callbacks=[guard])       # OrderedSampler: see `sampler.py`
    trainer.train()
    guard.verdict          # what it came to; guard.verdict.sentence says it in words

Trainer shows its callbacks neither logits nor labels. A forward hook on the model does: it takes both from
the training batches that pass by, whatever the accumulation, and is gone when training ends. The loss that
is judged is the plain cross-entropy of these, whatever loss is trained with. Gradients are read before each
step of the optimizer, when Trainer has shortened them all alike.

Promises: nothing changes for the training until an alarm, not even its random numbers; a resumed training
goes on with the guard's state where Trainer keeps callbacks (`restore_callback_states_from_checkpoint`).
With `torch.nn.DataParallel` every replica reports its part; with several processes all add up what they
saw, so that they stop together.
What is not covered: sharded gradients (FSDP, DeepSpeed ZeRO), whose norms are partial; labels that Trainer
takes away before the model sees them (`label_smoothing_factor`, `compute_loss_func`), regression and labels
of tokens, where the guard says so and does nothing; cures, which need a loop of their own (`textmill.train`).
"""

from __future__ import annotations

import logging
import math
from typing import Any

import torch
import torch.distributed
from torch import nn
from torch.nn import functional
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import ExportableState

from textmill.integrations.sampler import OrderedSampler
from textmill.train.guard.config import GuardConfig
from textmill.train.guard.guard import Guard
from textmill.train.guard.verdict import Verdict

__all__ = ["CollapseGuard", "OrderedSampler"]

log = logging.getLogger(__name__)


class CollapseGuard(TrainerCallback, ExportableState):  # type: ignore[misc]
    """Stops a training that has fallen into the constant answer, and says why."""

    def __init__(
        self, config: GuardConfig | None = None, *, encoder: str | None = None, stops: bool = True
    ) -> None:
        """Keep the settings.

        Args:
            config: how it watches; None for the defaults.
            encoder: name of the encoder inside the model; None for its `base_model`.
            stops: whether an alarm ends the training; False only tells it.
        """
        self._config = config or GuardConfig()
        self._encoder_name = encoder
        self._stops = stops
        self._guard: Guard | None = None
        self._hook: Any = None
        self._encoder: list[nn.Parameter] = []
        self._head: list[nn.Parameter] = []
        self._seen: list[torch.Tensor] = []
        """Of the batches since the last step: [sum of losses, *measure]."""
        self._norms: torch.Tensor | None = None
        self._is_probed = False
        self.guard_state: dict[str, Any] | None = None
        """What `Guard.state` returned last before a checkpoint."""

    @property
    def verdict(self) -> Verdict:
        """The judgement as it stands."""
        if self._guard is None:
            return Verdict("healthy", 0, {}, "Nothing has been judged yet.", False)
        return self._guard.verdict()

    def state(self) -> dict[str, Any]:
        """Return what Trainer writes into a checkpoint."""
        state = self._guard.state() if self._guard else None
        return {
            "args": {"encoder": self._encoder_name, "stops": self._stops},
            "attributes": {"guard_state": state},
        }

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        model: nn.Module | None = None,
        **_: Any,
    ) -> None:
        """Take hold of the model."""
        assert model is not None
        inner = _unwrapped(model)
        settings = getattr(inner, "config", None)
        num_labels = int(getattr(settings, "num_labels", 0) or 0)
        names = getattr(settings, "id2label", None) or {}
        is_multilabel = getattr(settings, "problem_type", None) == "multi_label_classification"
        encoder = _encoder_of(inner, self._encoder_name)
        of_encoder = {id(parameter) for parameter in encoder.parameters()}
        self._encoder = [p for p in inner.parameters() if id(p) in of_encoder]
        self._head = [p for p in inner.parameters() if id(p) not in of_encoder]
        self._guard = None
        if num_labels:
            labels = [str(names.get(index, index)) for index in range(num_labels)]
            self._guard = self._new_guard(num_labels, is_multilabel, labels)
        self._is_probed = state.global_step > 0
        self._seen.clear()
        self._hook = inner.register_forward_hook(self._see, with_kwargs=True)

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Read the gradients."""
        norms = [
            nn.utils.get_total_norm([p.grad for p in part if p.grad is not None])
            for part in (self._encoder, self._head)
        ]
        self._norms = torch.stack([norm.float() for norm in norms])

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        optimizer: torch.optim.Optimizer | None = None,
        **_: Any,
    ) -> None:
        """Judge, and stop the training on an alarm."""
        if self._guard is None or not self._seen:
            if self._hook is not None:
                log.warning(
                    "CollapseGuard must see class `labels` of whole texts among the model's inputs and their "
                    "`logits` in its output, but got none and does nothing. label_smoothing_factor and "
                    "compute_loss_func take the labels away; regression and labels of tokens have none."
                )
                self._remove_hook()
            return
        told = torch.stack([part.to("cpu", torch.float64) for part in self._seen]).sum(0)
        self._seen.clear()
        told = _sum_over_processes(told)
        loss, *sums = told.tolist()
        encoder, head = (math.nan, math.nan) if self._norms is None else self._norms.tolist()
        if args.fp16 and not math.isfinite(encoder + head):
            return  # a step that the loss scaler leaves out, which is its way of finding the scale
        lr = float(optimizer.param_groups[0]["lr"]) if optimizer is not None else 0.0
        self._tell(
            self._guard.observe(state.global_step, loss / max(sums[0], 1.0), sums, encoder, head, lr), control
        )

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Let go of the model."""
        self._remove_hook()

    def _tell(self, verdict: Verdict | None, control: TrainerControl) -> None:
        if verdict is None:
            return
        if not verdict.is_alarm:
            log.info(verdict.sentence)
            return
        log.warning(verdict.sentence)
        if self._stops:
            control.should_training_stop = True

    def _new_guard(self, num_labels: int, is_multilabel: bool, labels: list[str]) -> Guard:
        guard = Guard(self._config, num_labels, is_multilabel=is_multilabel, labels=labels)
        if self.guard_state is not None:
            guard.restore(self.guard_state)
        return guard

    def _see(self, module: nn.Module, args: tuple[Any, ...], inputs: dict[str, Any], output: Any) -> None:
        """Take note of a training batch; the forward hook."""
        labels = inputs.get("labels")
        logits = _logits_of(output)
        if not module.training or labels is None or logits is None:
            return
        labels, logits = labels.detach(), logits.detach()
        is_regression = getattr(getattr(module, "config", None), "problem_type", None) == "regression"
        if is_regression or not _are_of_classes(logits, labels):
            return
        is_multilabel = labels.ndim == 2
        if self._guard is None:  # a model without a config that names its labels
            count = logits.shape[-1]
            self._guard = self._new_guard(count, is_multilabel, [str(index) for index in range(count)])
        if not self._is_probed:
            self._is_probed = True
            self._probe(module, inputs)
        values = self._guard.measure(logits, labels)
        scores = logits.float()
        if is_multilabel:
            loss = (
                functional.binary_cross_entropy_with_logits(scores, labels.float(), reduction="none")
                .mean(1)
                .sum()
            )
        else:
            loss = functional.cross_entropy(scores, labels.view(-1), reduction="sum")
        self._seen.append(torch.cat([loss[None], values]))

    def _probe(self, module: nn.Module, inputs: dict[str, Any]) -> None:
        """Look whether the input reaches the logits at all, without dropout, before the first step."""
        assert self._guard is not None
        modes = {each: each.training for each in module.modules()}
        module.eval()
        try:
            with torch.no_grad():
                output = module(**{name: value for name, value in inputs.items() if name != "labels"})
        finally:
            for each, is_training in modes.items():
                each.training = is_training
        logits = _logits_of(output)
        assert logits is not None
        verdict = self._guard.probe(logits)
        if verdict is not None:
            log.warning(verdict.sentence)

    def _remove_hook(self) -> None:
        if self._hook is not None:
            self._hook.remove()
            self._hook = None


def _unwrapped(model: nn.Module) -> nn.Module:
    """Return the model inside DataParallel or DistributedDataParallel."""
    while isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        model = model.module
    return model


def _logits_of(output: Any) -> torch.Tensor | None:
    return output.get("logits") if isinstance(output, dict) else getattr(output, "logits", None)


def _are_of_classes(logits: torch.Tensor, labels: torch.Tensor) -> bool:
    """Return whether (B, C) logits stand against one class a row, or (B, C) of several."""
    if logits.ndim != 2 or logits.shape[1] < 2:
        return False
    return labels.shape == logits.shape or (labels.ndim == 1 and not labels.is_floating_point())


def _encoder_of(model: nn.Module, name: str | None) -> nn.Module:
    if name is not None:
        return model.get_submodule(name)
    base = getattr(model, "base_model", model)
    if base is not model:
        assert isinstance(base, nn.Module)
        return base
    named = getattr(model, "encoder", None)
    return named if isinstance(named, nn.Module) else model


def _sum_over_processes(values: torch.Tensor) -> torch.Tensor:
    """Return the sum over all processes; the values themselves where there is only one."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return values
    if torch.distributed.get_world_size() == 1:
        return values
    on_gpu = torch.distributed.get_backend() == "nccl"
    summed = values.to("cuda" if on_gpu else "cpu")
    torch.distributed.all_reduce(summed)
    return summed.cpu()
