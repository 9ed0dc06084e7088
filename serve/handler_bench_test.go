package serve_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/serve"
)

// BenchmarkHandler measures requests of one example of 784 numbers over loopback, to a model that costs nothing, by
// connections that each wait for their answers.
func BenchmarkHandler(b *testing.B) {
	ten := serve.Func(func(_ context.Context, batch data.Batch) (map[string]data.Array, error) {
		n := batch.Fields[0].Array.Len()
		flat := batch.Fields[0].Array.Flat.([]float32)
		return map[string]data.Array{"y": {Flat: flat[:10*n], Dims: []int{n, 10}}}, nil
	})
	of, err := serve.New(ten, data.Batch{Fields: []data.Field{data.X(make([]float32, 784), 1, 784)}}, serve.Batching{MaxBatch: 64})
	require.NoError(b, err)
	defer of.Close()
	h, err := serve.NewHandler(map[string]*serve.Batcher{"m": of}, serve.Options{})
	require.NoError(b, err)
	server := httptest.NewServer(h)
	defer server.Close()
	numbers := make([]string, 784)
	for i := range numbers {
		numbers[i] = fmt.Sprint(float32(i%97)/31 - 1)
	}
	text := `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,784],"data":[` + strings.Join(numbers, ",") + `]}]}`
	address := strings.TrimPrefix(server.URL, "http://")
	request := fmt.Appendf(nil, "POST /v2/models/m/infer HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", address, len(text), text)
	for _, clients := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			var connections []net.Conn
			for range clients {
				c, err := net.Dial("tcp", address)
				require.NoError(b, err)
				defer c.Close()
				connections = append(connections, c)
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			b.SetBytes(int64(len(text)))
			b.ResetTimer()
			var group sync.WaitGroup
			for _, c := range connections {
				group.Go(func() {
					answers := bufio.NewReader(c)
					for left.Add(-1) >= 0 {
						if err := exchange(c, answers, request); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
		})
	}
}

func exchange(c io.Writer, answers *bufio.Reader, request []byte) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	answer, err := http.ReadResponse(answers, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer is %s", answer.Status)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}
