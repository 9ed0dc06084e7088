// Package serve answers many callers with one model: requests that wait together run as one batch, and a [Handler]
// gives them to HTTP by the Open Inference Protocol, version 2 (REST):
//
//	batcher, err := serve.New(model, example, serve.Batching{MaxBatch: 64})
//	err = batcher.Warm(ctx) // compiles all sizes of batches, and then it is ready
//	handler, err := serve.NewHandler(map[string]*serve.Batcher{"digits": batcher}, serve.Limits{})
//	err = http.ListenAndServe("localhost:8000", handler)
//
// A model is a [Predictor]: a flaxlike.Model is one, beside its own Fit too, and a [Func] makes one of anything else.
// examples/serve is a whole server: it has time limits, and a signal ends it when what it accepted is answered.
//
// # What a caller can rely on
//
//   - All examples of a batch are predicted with one call of the predictor, so with one set of weights.
//   - An example's outputs depend on no other example, if the network has it so: those of other requests, and copies that
//     fill a batch up, stand beside it. Another size of batch is another program, whose last bits may differ.
//   - A request that is wrong fails alone, and a context that ends harms its own request alone.
//   - What was accepted is answered, by Close too. What the queue has no room for is [ErrFull], at once.
package serve
