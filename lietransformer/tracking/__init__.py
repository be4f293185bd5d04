"""MLflow as a view on run folders: nothing in it that the folders do not have."""

import os

# Nothing about a user's runs goes anywhere but into their store.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
# A server that is down is asked again by us, not for minutes on end by the client.
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
# What a command prints is ours to say.
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
