"""Prints what TensorBoard sees in a folder of event files, read by both of its loaders: the one in Python and the data server.

    go test ./callbacks/tensorboard -run TestTensorBoardSees -fixture DIR     # writes DIR
    pip install tensorboard                                         # 2.21 made the golden file
    python callbacks/tensorboard/testdata/seen.py DIR > callbacks/tensorboard/testdata/seen.golden
"""
import io
import sys
import time
import wave

import grpc  # noqa: F401  (the data server needs it)
from PIL import Image
from tensorboard import context
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.data import provider, server_ingester
from tensorboard.plugins.hparams import metadata as hparams

CTX = context.RequestContext()


def everything(p):
    lines = []
    at = dict(experiment_id="")
    for run, tags in p.list_scalars(CTX, plugin_name="scalars", **at).items():
        data = p.read_scalars(CTX, plugin_name="scalars", downsample=10**6, **at)
        for tag in tags:
            for d in data[run][tag]:
                lines.append(f"{run} {tag!a} {d.step} at {d.wall_time:.3f} scalar {d.value:.6e}")
    for plugin in ("text", "histograms"):
        for run, tags in p.list_tensors(CTX, plugin_name=plugin, **at).items():
            data = p.read_tensors(CTX, plugin_name=plugin, downsample=10**6, **at)
            for tag in tags:
                for d in data[run][tag]:
                    if plugin == "text":
                        shown = [t.decode() for t in d.numpy.reshape(-1)]
                    else:
                        shown = [f"{v:.6e}" for v in d.numpy.reshape(-1)]
                    lines.append(f"{run} {tag!a} {d.step} at {d.wall_time:.3f} {plugin} {list(d.numpy.shape)} {' | '.join(shown)}")
    for plugin in ("images", "audio"):
        for run, tags in p.list_blob_sequences(CTX, plugin_name=plugin, **at).items():
            data = p.read_blob_sequences(CTX, plugin_name=plugin, downsample=10**6, **at)
            for tag in tags:
                for d in data[run][tag]:
                    blobs = [p.read_blob(CTX, blob_key=v.blob_key) for v in d.values]
                    lines.append(f"{run} {tag!a} {d.step} at {d.wall_time:.3f} {plugin} {' | '.join(map(shown_blob(plugin), blobs))}")
    for run, tags in p.list_tensors(CTX, plugin_name=hparams.PLUGIN_NAME, **at).items():
        for tag, series in tags.items():
            if tag == hparams.SESSION_START_INFO_TAG:
                info = hparams.parse_session_start_info_plugin_data(series.plugin_content)
                lines.append(f"{run} session started at {info.start_time_secs:.3f}")
                for k, v in info.hparams.items():
                    kind = v.WhichOneof("kind")
                    x = getattr(v, kind)
                    lines.append(f"{run} parameter {k} {kind} {f'{x:.6e}' if kind == 'number_value' else str(x).lower()}")
            else:
                info = hparams.parse_session_end_info_plugin_data(series.plugin_content)
                lines.append(f"{run} session ended at {info.end_time_secs:.3f} status {info.status}")
    return sorted(lines)


def shown_blob(plugin):
    def picture(b):
        try:
            p = Image.open(io.BytesIO(b)).convert("L")
        except Exception:
            return b.decode()  # the width or the height
        return f"{p.width}x{p.height} {sum(p.tobytes())}"

    def sound(b):
        w = wave.open(io.BytesIO(b))
        return f"{w.getnframes()} of {w.getnchannels()} at {w.getframerate()} Hz"

    return picture if plugin == "images" else sound


def main(folder):
    m = plugin_event_multiplexer.EventMultiplexer(
        tensor_size_guidance={k: 0 for k in ("scalars", "images", "audio", "text", "histograms", "hparams")})
    m.AddRunsFromDirectory(folder)
    m.Reload()
    old = everything(data_provider.MultiplexerDataProvider(m, folder))
    server = server_ingester.SubprocessServerDataIngester(
        server_binary=server_ingester.get_server_binary(), logdir=folder, reload_interval=1,
        channel_creds_type=__import__("tensorboard.util.grpc_util", fromlist=["x"]).ChannelCredsType.LOCAL,
        samples_per_plugin={k: 0 for k in ("scalars", "images", "audio", "text", "histograms", "hparams")})
    server.start()
    for _ in range(100):  # it reads beside us
        new = everything(server.data_provider)
        if new == old:
            break
        time.sleep(0.1)
    for line in old:
        print(line)
    if new != old:
        print("the data server sees something else:", *sorted(set(new) ^ set(old)), sep="\n  ", file=sys.stderr)
        sys.exit(1)


main(sys.argv[1])
