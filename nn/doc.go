// Package nn has the layers of today's models: dense layers and convolutions, embeddings and positions, normalisations,
// recurrences over sequences, attention. docs/layers.md has each with its defaults, and what Keras and flax call it.
//
//	h := nn.Embedding{Vocabulary: 1000, Width: 64, Padding: new(0)}.Apply(s.In("tokens"), ids)
//	h = nn.LSTM{Units: 128, Bidirectional: true, Mask: lengths}.Apply(s.In("lstm"), h)
//	y := nn.Dense{Units: 10}.Apply(s.In("classes"), h)
//
// A [Layer] is a value, whose zero settings are the field's defaults. Its Apply builds it in the graph of a step, of
// package managed or another user of GoMLX's model.Store. A network of layers is a layer too, for an own step and for a
// model of package flaxlike:
//
//	network := nn.Sequential{nn.Flatten{}, nn.Dense{Units: 64}, nn.Activation("relu"), nn.Dropout{Rate: 0.2}, nn.Dense{Units: 10}}
//	logits := network.Apply(s, images)
//
// Inputs have the batch first and the features last, sequences are [batch, places, n], and variables have the type of
// the input.
//
// # Variables
//
// A layer's variables stand right at the scope that it is given, with Keras's names, which do not change: kernel, bias,
// recurrent_kernel, gamma, beta, scale, embeddings. Each layer needs a scope of its own, as s.In("classes"); a second
// one at the same scope is an error. For the same weights in two places give the second one s.Shared("classes"). In the
// body of a loop of package ops take s.At("classes"), which is right however often the body is called.
//
// # Errors
//
// These are functions of a graph, as GoMLX's are: they panic with an error, which the step that is being built gives as
// its own.
package nn
