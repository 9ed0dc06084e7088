// Command serve trains a small network on the digits and serves it by the Open Inference Protocol until a signal: go
// run ./examples/serve -listen localhost:8000
//
//	curl localhost:8000/v2/models/digits
//	curl localhost:8000/v2/models/digits/infer -d '{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 8, 8, 1], "data": [
//	  0,0,0,1,1,0,0,0, 0,0,0,1,1,0,0,0, 0,0,0,1,1,0,0,0, 0,0,0,1,1,0,0,0,
//	  0,0,0,1,1,0,0,0, 0,0,0,1,1,0,0,0, 0,0,0,1,1,0,0,0, 0,0,0,1,1,0,0,0]}]}'
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/serve"
)

func main() {
	must.M = loop.Exit
	address := flag.String("listen", "localhost:8000", "the `address` to answer at")
	delay := flag.Duration("delay", 0, "how long a request may wait for others, to run in one batch")
	drain := flag.Duration("drain", time.Second, "how long to continue answering after a signal: longer than a client takes to see that the server is not ready")
	flag.Parse()
	ctx, stop := loop.WithSignals(context.Background())
	defer stop()

	training, test := must.M2(data.Digits())
	model := must.M1(flaxlike.New(ctx, nn.Sequential{
		nn.Flatten{}, nn.Dense{Units: 64}, nn.Activation("relu"), nn.Dense{Units: 10}},
		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"), flaxlike.WithLearningRate(0.01),
		flaxlike.InstallIfMissing(func(line string) { log.Print(line) })))
	must.M1(model.Fit(ctx, training, flaxlike.Fit{Epochs: 3, Validation: test}))

	// without labels
	example := must.M1(data.Peek(test.Batches(1).All()))
	example.Fields = example.Fields[:1]
	batcher := must.M1(serve.New(model, example, serve.Batching{MaxBatch: 32, Delay: *delay}))
	handler := must.M1(serve.NewHandler(map[string]*serve.Batcher{"digits": batcher}, serve.Options{MaxBody: 1 << 20, Timeout: 5 * time.Second}))

	// It listens at once, and is ready after compiling.
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 15 * time.Second, IdleTimeout: 2 * time.Minute}
	listener := must.M1(net.Listen("tcp", *address))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	must.M(batcher.Warm(ctx))
	log.Printf("ready: http://%s/v2/models/digits", listener.Addr())

	select {
	case err := <-ended:
		must.M(err)
	case <-ctx.Done():
	}
	// Readiness checks fail, accepted requests are answered.
	handler.Drain()
	time.Sleep(*drain)
	grace, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	must.M(server.Shutdown(grace))
	must.M(batcher.Close())
	must.M(model.Close())
	log.Print("all requests are answered")
}
