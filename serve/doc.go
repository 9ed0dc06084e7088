// Package serve serves models to many callers: a [Batcher] batches waiting requests, and a [Handler] offers the
// models over HTTP by the Open Inference Protocol, version 2 (REST). A model is a [Predictor]: a flaxlike.Model, also
// during its Fit, or a [Func].
//
// # Guarantees
//
//   - All examples of a batch use one call of the predictor: one set of weights.
//   - An example's outputs do not depend on other examples and padding, if the network computes them independently.
//     Another batch size is another program, whose last bits may differ.
//   - Invalid requests and contexts that end do not affect other requests.
//   - Accepted requests are answered, also after Close. A full queue is [ErrFull] at once.
//   - [Options] bound a request's memory and time over HTTP.
package serve
