# Serves the live version of a project, as a user without rights.
#   docker build -t textmill .
#   docker run -p 8080:8080 -v "$PWD:/project" --user "$(id -u):$(id -g)" textmill
# The user must be able to write to the store's folder (journal, admin token). Promote from the host: the server
# in the container follows.
# A CPU build of torch: --build-arg PIP_EXTRA_INDEX_URL=<an index that has one>
FROM python:3.12-slim

ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
RUN useradd --uid 10001 --create-home textmill
WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY textmill textmill
RUN pip install --no-cache-dir --constraint constraints.txt .

USER textmill
WORKDIR /project
ENV HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
EXPOSE 8080
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/health/live', timeout=3)"]
# In a container the public socket must listen on all addresses; the admin socket stays on loopback.
CMD ["textmill", "serve", "/project/project.toml", "--set", "serve.host=0.0.0.0", "--set", "serve.port=8080"]
