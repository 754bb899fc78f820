"""The formats that come in: one module each, registered when this package is imported."""

from traceconv.importers import chrome_trace as chrome_trace
from traceconv.importers import mxnet as mxnet
from traceconv.importers import onednn_verbose as onednn_verbose
from traceconv.importers import onnxruntime as onnxruntime
from traceconv.importers import pytorch_kineto as pytorch_kineto
