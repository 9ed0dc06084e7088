// Package nn has dense, convolution, embedding, position, normalization, recurrent and attention layers. docs/layers.md
// lists each with its defaults and its names in Keras and flax.
//
//	h := nn.Embedding{Vocabulary: 1000, Width: 64, Padding: new(0)}.Apply(s.In("tokens"), ids)
//	h = nn.LSTM{Units: 128, Bidirectional: true, Mask: lengths}.Apply(s.In("lstm"), h)
//	y := nn.Dense{Units: 10}.Apply(s.In("classes"), h)
//
// A [Layer] is a value with settings; a zero setting takes its default. Apply builds it in the graph of a step, of
// package managed or of another user of GoMLX's model.Store. A network is a layer too, for a custom step or a model of
// package flaxlike:
//
//	network := nn.Sequential{nn.Flatten{}, nn.Dense{Units: 64}, nn.Activation("relu"), nn.Dropout{Rate: 0.2}, nn.Dense{Units: 10}}
//	logits := network.Apply(s, images)
//
// Inputs have the batch first and the features last. Sequences are [batch, places, n]. Variables have the input's
// dtype. Normalizations sum 16-bit inputs in float32.
//
// # Variables
//
// A layer's variables are directly in its scope, with Keras's names, which are stable: kernel, bias, recurrent_kernel,
// gamma, beta, scale, embeddings. Each layer needs its own scope, such as s.In("classes"); a second layer there is an
// error. To share weights, give the second one s.Shared("classes"). In the body of a loop of package xla/ops use
// s.At("classes").
//
// # Errors
//
// Like GoMLX's graph functions, layers panic with an error. The step that is being built returns it.
package nn
