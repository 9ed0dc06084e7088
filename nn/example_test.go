//lazo:norace
package nn_test

import (
	"context"
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/xla"
)

// A classifier of sentences of different lengths, padded by 0, and the variables that it has.
func Example() {
	runtime, err := xla.Open(context.Background(), xla.CPU)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer runtime.Close()
	store := model.NewStore()
	classify := model.MustNewExec(runtime, store, func(s *model.Scope, ids, lengths *graph.Node) *graph.Node {
		x := nn.Embedding{Vocabulary: 100, Width: 8, Padding: new(0)}.Apply(s.In("words"), ids)
		h := nn.LSTM{Units: 16, Bidirectional: true, Last: true, Mask: lengths}.Apply(s.In("lstm"), x)
		return nn.Dense{Units: 3}.Apply(s.In("classes"), h)
	})
	logits, err := classify.Call1([][]int32{{5, 17, 2, 9}, {5, 42, 0, 0}}, []int32{4, 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(logits.Shape())
	for _, path := range []string{"/words/embeddings", "/lstm/forward/recurrent_kernel", "/classes/kernel"} {
		fmt.Println(path, store.GetVariable(path).Shape())
	}
	// Output:
	// (Float32)[2, 3]
	// /words/embeddings (Float32)[100, 8]
	// /lstm/forward/recurrent_kernel (Float32)[16, 64]
	// /classes/kernel (Float32)[32, 3]
}

// A convolution over images, pooling and a dense layer as one network, on GoMLX's Go backend, which needs no plugin.
func ExampleSequential() {
	runtime, err := xla.Open(context.Background(), xla.Go)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer runtime.Close()
	network := nn.Sequential{
		nn.Conv{Channels: 4, Window: []int{3}}, nn.Activation("relu"), nn.MaxPool{Window: 2},
		nn.Flatten{}, nn.Dense{Units: 10},
	}
	store := model.NewStore()
	classify := model.MustNewExec(runtime, store, func(s *model.Scope, images *graph.Node) *graph.Node { return network.Apply(s, images) })
	images := tensors.FromShape(shapes.Make(dtypes.Float32, 2, 8, 8, 1)) // batch, height, width, channels
	logits, err := classify.Call1(images)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(logits.Shape())
	for _, path := range []string{"/0/kernel", "/4/kernel"} {
		fmt.Println(path, store.GetVariable(path).Shape())
	}
	// Output:
	// (Float32)[2, 10]
	// /0/kernel (Float32)[3, 3, 1, 4]
	// /4/kernel (Float32)[64, 10]
}
