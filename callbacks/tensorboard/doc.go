// Package tensorboard writes the logs of a run into event files for TensorBoard:
//
//	result, err := training.Run(ctx, state, batches, loop.Until(loop.Steps(2000)),
//		tensorboard.Write("runs/1", loop.Every(loop.Steps(10))))
//
// and then "tensorboard --logdir runs". What an evaluation logs (loss_test, val_accuracy) is written as another run
// beside that of the training, so that the curves of both are in one chart:
//
//	runs/1/train  losses/loss, metrics/accuracy, …
//	runs/1/test   losses/loss, metrics/accuracy, …
//
// A tag is the entry's collection and name. A metric over more than a step ([loop.Stateful], as all of Fit's) has the
// tag of a metric, too, metrics/accuracy; where a run logs both by one name, it has the tag stateful_metrics/accuracy.
//
// The type of a logged value decides how it is written:
//
//	a number                           a scalar, in float32, which is all that TensorBoard shows
//	image.Image, or a list of them     an image, as PNG
//	[Audio], or a list of them         sound, as WAV
//	string, or a list of them          text, in Markdown
//	[Histogram]                        a histogram
//
// Numbers are written as TensorFlow 1 and PyTorch do, so that a program reads them by TensorBoard's own class, one run
// at a time; what a run that was killed wrote behind the step with which it was resumed is not among them:
//
//	from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
//	run = EventAccumulator("runs/1/train", size_guidance={"scalars": 0})
//	run.Reload()
//	losses = [(e.step, e.value) for e in run.Scalars("losses/loss")]
//
// All else is written as tensors, which that class gives by Tensors and does not drop.
//
// Values other than numbers are logged with [loop.Logs.Output]. A payload of another type is left out. TensorFlow is
// not needed: the package writes records in TensorFlow's framing, with the field numbers of TensorBoard's protocol
// buffers.
package tensorboard
