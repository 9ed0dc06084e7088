// Package serve serves a model to many callers: it batches waiting requests, and a [Handler] offers the models over
// HTTP by the Open Inference Protocol, version 2 (REST):
//
//	batcher, err := serve.New(model, example, serve.Batching{MaxBatch: 64})
//	err = batcher.Warm(ctx) // compiles all sizes of batches, and then it is ready
//	handler, err := serve.NewHandler(map[string]*serve.Batcher{"digits": batcher}, serve.Limits{})
//	err = http.ListenAndServe("localhost:8000", handler)
//
// A model is a [Predictor]: a flaxlike.Model, also during its Fit, or a [Func]. examples/serve is a complete server
// with time limits and graceful shutdown.
//
// # Guarantees
//
//   - All examples of a batch use one call of the predictor, so one set of weights.
//   - An example's outputs do not depend on the other examples and the padding, if the network computes them
//     independently. Another batch size is another program, whose last bits may differ.
//   - An invalid request fails alone. A context that ends affects its own request only.
//   - Accepted requests are answered, also after Close. A request that finds the queue full gets [ErrFull] at once.
package serve
