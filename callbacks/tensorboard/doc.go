// Package tensorboard writes what a run logs into event files, which TensorBoard shows:
//
//	result, err := training.Run(ctx, state, batches, loop.Until(loop.Steps(2000)),
//		tensorboard.Write("runs/1", loop.Every(loop.Steps(10))))
//
// and then "tensorboard --logdir runs". What an evaluation logs (loss_test, accuracy_val) is a run of its own beside that of
// the training, so that the curves of both lie in one chart, as Keras has it:
//
//	runs/1/train  losses/loss, metrics/accuracy, …
//	runs/1/test   losses/loss, metrics/accuracy, …
//
// The type of a logged value says what it becomes:
//
//	a number                           a scalar, in float32, which is all that TensorBoard shows
//	image.Image, or a list of them     an image, as PNG
//	[Audio], or a list of them         sound, as WAV
//	string, or a list of them          text, in Markdown
//	[Histogram]                        a histogram
//
// Anything but a number is logged with [loop.Logs.Output]. A payload of another type is left out, as the other writers do. There is
// no TensorFlow in this: the records are written as TensorFlow frames them, with the field numbers of TensorBoard's own
// protocol buffers.
package tensorboard
