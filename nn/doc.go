// Package nn has dense, convolution, embedding, position, normalization, recurrent and attention layers.
// docs/layers.md lists them.
//
// A [Layer] is a value with settings; a zero setting takes its default: "glorot_uniform" for kernels and "zeros" for
// biases, unless documented otherwise. Apply builds it in the graph of a step, of package managed or of another user
// of GoMLX's model.Store. A network is a layer too ([Sequential]).
//
// Inputs have the batch first and the features last. Sequences are [batch, places, n]. Variables have the input's
// dtype. Normalizations sum 16-bit inputs in float32.
//
// # Variables
//
// A layer's variables are directly in its scope, with Keras's names, which are permanent: kernel, bias,
// recurrent_kernel, gamma, beta, scale, embeddings. Each layer needs its own scope, like s.In("classes"); a second
// layer there is an error. To share weights, give the second one s.Shared("classes"). In the body of a loop of package
// xla/ops use s.At("classes").
//
// Layers panic with an error, which the step returns.
package nn
