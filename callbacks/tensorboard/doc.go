// Package tensorboard writes a run's logs into event files for TensorBoard ("tensorboard --logdir runs"). The logs of
// an evaluation (loss_test, val_accuracy) are a separate run:
//
//	runs/1/train  losses/loss, metrics/accuracy, …
//	runs/1/test   losses/loss, metrics/accuracy, …
//
// A tag is the entry's collection and name. A metric over several steps ([loop.Stateful]) is tagged so too, or
// stateful_metrics/accuracy if the run logs both.
//
// The Go type of a value decides its form; other types are omitted:
//
//	a number                           a scalar, in float32
//	image.Image, or a list of them     an image, as PNG
//	[Audio], or a list of them         sound, as WAV
//	string, or a list of them          text, in Markdown
//	[Histogram]                        a histogram
//
// Log values other than numbers with [loop.Logs.Output]. They are tensors (EventAccumulator.Tensors in Python).
// EventAccumulator("runs/1/train", size_guidance={"scalars": 0}).Scalars reads numbers without the steps that a
// resumed run has replaced, after Reload.
package tensorboard
