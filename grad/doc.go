// Package grad has derivatives for the graph of a step, of any order, also inside of each other and inside the bodies
// of package flow: gradients, products with the Jacobian from either side, and the gradient of each example of a batch.
//
//	dw := grad.Gradient(loss, w)[0]
//	hv := grad.JVP([]*graph.Node{dw}, []*graph.Node{w}, []*graph.Node{v})[0] // the Hessian times v
//
// docs/gradients.md says which operations have derivatives, and what they are where a function has no single slope.
//
// These are functions of a graph, as GoMLX's are: they panic with an error, which the step that is being built gives as
// its own.
package grad
