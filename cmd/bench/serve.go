package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/serve"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

const serveChild = "serve-child"

// Variants are numbers of connections, each waiting for its answer. The server, lazo's or a peer's, is a separate
// process.
func serving(ctx context.Context, b *bench) (err error) {
	address, stop, err := b.startServer(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var requests [][]byte
	random := rand.New(rand.NewPCG(1, 1))
	for range 64 {
		x := make([]float32, 784)
		for i := range x {
			x[i] = float32(random.NormFloat64())
		}
		flat, err := json.Marshal(x)
		if err != nil {
			return err
		}
		body := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,784],"data":%s}]}`, flat)
		requests = append(requests, fmt.Appendf(nil, "POST /v2/models/mlp/infer HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			address, len(body), body))
	}
	n := cmp.Or(b.steps, 4000)
	for _, clients := range asking {
		if !b.wants(fmt.Sprint(clients)) {
			continue
		}
		connections, err := connect(ctx, address, clients)
		if err != nil {
			return err
		}
		var took []time.Duration
		load := func(n int) (err error) {
			took, err = loaded(connections, requests, n)
			return err
		}
		err = load(max(n/4, clients))
		var measured repeats
		if err == nil {
			measured, err = b.measure(ctx, b.repeats, func() error { return load(n) })
		}
		for _, c := range connections {
			err = errors.Join(err, c.Close())
		}
		if err != nil {
			return err
		}
		slices.Sort(took)
		at := func(share float64) float64 { return float64(took[int(share*float64(len(took)-1))]) / 1e3 }
		l := line{Workload: "serve", Variant: fmt.Sprint(clients), Unit: "requests/s", Batch: 1, Steps: n, P50: at(0.5), P99: at(0.99)}
		if b.server != "" {
			l.Impl = "jax"
		}
		if err := b.emit(l, measured.each(func(s float64) float64 { return float64(n) / s })); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) startServer(ctx context.Context) (address string, stop func() error, err error) {
	command := strings.Fields(b.server)
	if len(command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return "", nil, err
		}
		command = []string{self, serveChild}
	}
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	end, err := c.StdinPipe() // it ends with its input
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return "", nil, err
	}
	stop = func() error { return errors.Join(end.Close(), c.Wait()) }
	text, err := bufio.NewReader(out).ReadString('\n')
	address, found := strings.CutPrefix(strings.TrimSpace(text), "http://")
	if err == nil && !found {
		err = fmt.Errorf("%q said %q, expected its address, http://…", command, text)
	}
	if err != nil {
		return "", nil, errors.Join(err, stop())
	}
	return address, stop, nil
}

func connect(ctx context.Context, address string, n int) (connections []net.Conn, err error) {
	for range n {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		connections = append(connections, c)
	}
	return connections, nil
}

func loaded(connections []net.Conn, requests [][]byte, n int) ([]time.Duration, error) {
	answers := make([]*bufio.Reader, len(connections))
	for k, c := range connections {
		answers[k] = bufio.NewReader(c)
	}
	return asked(len(connections), n, func(k, i int) error {
		if _, err := connections[k].Write(requests[i%len(requests)]); err != nil {
			return err
		}
		return answered(answers[k])
	})
}

func answered(from *bufio.Reader) error {
	answer, err := http.ReadResponse(from, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(`"data"`))) {
		err = fmt.Errorf("%s: %.200s", answer.Status, body)
	}
	return errors.Join(err, answer.Body.Close())
}

func serveModel(ctx context.Context, stdout io.Writer) (err error) {
	r, err := xla.Open(ctx, xla.CPU)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	model, err := flaxlike.New(ctx, nn.Func(perceptron), flaxlike.WithStrategy(strategies.Jit(r)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	batcher, err := serve.New(model, data.Batch{Fields: []data.Field{data.X(make([]float32, 784), 1, 784)}}, serve.Batching{MaxBatch: 64})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, batcher.Close()) }()
	if err := batcher.Warm(ctx); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	handler, err := serve.NewHandler(map[string]*serve.Batcher{"mlp": batcher}, serve.Options{})
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // an error ends it too
		_ = server.Close()
	}()
	fmt.Fprintf(stdout, "http://%s\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
