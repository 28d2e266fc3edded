# Two images from one file: `portal` (web, workers, beat; no PyTorch) and `node` (agent and trainer; no Django).
#   docker build --target portal -t foretune-portal .
#   docker build --target node   -t foretune-node .
FROM python:3.11-slim-trixie AS base
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE
RUN useradd --create-home --uid 10001 foretune && mkdir /data && chown foretune /data
WORKDIR /app

FROM base AS portal
# For manage.py backup and restore; this Debian has the version of the server in docker-compose.yml.
RUN apt-get update && apt-get install -y --no-install-recommends postgresql-client-17 && rm -rf /var/lib/apt/lists/*
COPY requirements requirements
RUN pip install --no-deps --require-hashes -r requirements/build.lock \
 && pip install --no-deps --require-hashes --no-build-isolation -r requirements/core.lock
# LICENSE goes into the wheels that the portal offers to its nodes and people.
COPY manage.py LICENSE ./
COPY portal portal
COPY scheduler scheduler
COPY knowledge knowledge
COPY trainer trainer
COPY client client
COPY templates templates
COPY static static
ENV DATA_DIR=/data DJANGO_SETTINGS_MODULE=portal.settings
USER foretune
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["python", "-m", "gunicorn", "portal.wsgi", "-c", "python:portal.configuration.gunicorn", \
     "--bind=0.0.0.0:8000", "--workers=2"]

FROM base AS node
# What a container with GPUs is shown of the driver: CUDA, and the library that lists them.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY requirements/torch.txt requirements/train.lock requirements/gpu.lock requirements/
RUN pip install -r requirements/torch.txt \
 && pip install --no-deps --require-hashes -r requirements/train.lock -r requirements/gpu.lock
COPY trainer trainer
USER foretune
VOLUME /data
# PORTAL is the portal's https address; the join token is read from a file so that no process list shows it.
CMD ["sh", "-c", "exec python -m trainer.agent --portal \"$PORTAL\" --join-file /run/secrets/join_token --dir /data/node"]
