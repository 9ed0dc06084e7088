// Package tensorboard writes the logs of a run into event files for TensorBoard ("tensorboard --logdir runs"). The logs
// of an evaluation (loss_test, val_accuracy) are a separate run: one chart shows both:
//
//	runs/1/train  losses/loss, metrics/accuracy, …
//	runs/1/test   losses/loss, metrics/accuracy, …
//
// A tag is the entry's collection and name. A metric over several steps ([loop.Stateful]) is also tagged
// metrics/accuracy, or stateful_metrics/accuracy if the run logs both by one name.
//
// The Go type of a value decides its form; other types are omitted:
//
//	a number                           a scalar, in float32
//	image.Image, or a list of them     an image, as PNG
//	[Audio], or a list of them         sound, as WAV
//	string, or a list of them          text, in Markdown
//	[Histogram]                        a histogram
//
// Log values other than numbers with [loop.Logs.Output]. They are written as tensors (EventAccumulator.Tensors in
// Python), numbers as by TensorFlow 1 and PyTorch: EventAccumulator("runs/1/train", size_guidance={"scalars":
// 0}).Scalars reads them without the steps that a resumed run has replaced, after Reload.
package tensorboard
