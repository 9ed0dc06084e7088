package examples

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

// It answers what it was trained on, and a signal that comes while requests wait ends it when they are answered.
func TestServe(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, plugintest.Program(t, "serve"), "-listen", "127.0.0.1:0", "-delay", "300ms")
	stderr, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	lines := bufio.NewScanner(stderr)
	model, said := "", ""
	for model == "" && lines.Scan() {
		said += lines.Text() + "\n"
		if m := regexp.MustCompile(`ready: (http\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			model = m[1]
		}
	}
	require.NotEmpty(t, model, said)

	get := func(url string) string {
		answer, err := http.Get(url)
		require.NoError(t, err)
		defer answer.Body.Close()
		var text json.RawMessage
		require.NoError(t, json.NewDecoder(answer.Body).Decode(&text))
		require.Equal(t, 200, answer.StatusCode, string(text))
		return string(text)
	}
	require.JSONEq(t, `{"name":"digits","versions":["1"],"platform":"lazo","inputs":[{"name":"x","datatype":"FP32","shape":[-1,8,8,1]}],
		"outputs":[{"name":"preds_class","datatype":"INT32","shape":[-1]},{"name":"preds_probability","datatype":"FP32","shape":[-1,10]}]}`, get(model))
	require.JSONEq(t, `{"ready":true}`, get(strings.TrimSuffix(model, "/models/digits")+"/health/ready"))

	// The request of the program's own description.
	text, err := os.ReadFile("serve/main.go")
	require.NoError(t, err)
	described := regexp.MustCompile(`(?s)/infer -d '(.*?)'`).FindSubmatch(text)
	require.NotNil(t, described)
	answer, err := http.Post(model+"/infer", "application/x-www-form-urlencoded", strings.NewReader(strings.ReplaceAll(string(described[1]), "\n//", "\n")))
	require.NoError(t, err)
	require.Equal(t, 200, answer.StatusCode)
	require.NoError(t, answer.Body.Close())

	_, test, err := data.Digits()
	require.NoError(t, err)
	batch, err := data.Peek(test.Batches(64).All())
	require.NoError(t, err)
	x, y := batch.Fields[0].Array, batch.Fields[1].Array.Flat.([]int32)
	type answered struct {
		right bool
		err   error
	}
	begun := make(chan struct{}, 64)
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}}
	ask := func(i int) (right bool, err error) {
		flat, err := json.Marshal(x.Slice(i, i+1).Flat)
		if err != nil {
			return false, err
		}
		// The server says that it reads the body when the request is under way.
		tracing := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got100Continue: func() { begun <- struct{}{} }})
		request, err := http.NewRequestWithContext(tracing, "POST", model+"/infer",
			strings.NewReader(fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,8,8,1],"data":%s}]}`, flat)))
		if err != nil {
			return false, err
		}
		request.Header.Set("Expect", "100-continue")
		answer, err := client.Do(request)
		if err != nil {
			return false, err
		}
		defer answer.Body.Close()
		var out struct {
			Outputs []struct{ Data []float64 }
		}
		if err := json.NewDecoder(answer.Body).Decode(&out); err != nil || len(out.Outputs) != 2 || len(out.Outputs[0].Data) != 1 || len(out.Outputs[1].Data) != 10 {
			return false, fmt.Errorf("%s: %v, %w", answer.Status, out, err)
		}
		class, probabilities := int(out.Outputs[0].Data[0]), out.Outputs[1].Data
		sum := 0.0
		for _, p := range probabilities {
			sum += p
		}
		if sum < 0.999 || sum > 1.001 || slices.Max(probabilities) != probabilities[class] {
			return false, fmt.Errorf("class %d, probabilities of %v together: %v", class, sum, probabilities)
		}
		return class == int(y[i]), nil
	}
	all := make(chan answered, 64)
	for i := range 64 {
		go func() {
			right, err := ask(i)
			all <- answered{right, err}
		}()
	}
	for range 64 {
		select {
		case <-begun:
		case <-ctx.Done():
			t.Fatal("a request has not begun")
		}
	}
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	right := 0
	for range 64 {
		a := <-all
		require.NoError(t, a.err)
		if a.right {
			right++
		}
	}
	for lines.Scan() {
		said += lines.Text() + "\n"
	}
	require.NoError(t, c.Wait(), said)
	require.Contains(t, said, "all requests are answered")
	require.Greater(t, right, 50)
	t.Logf("%d of 64 right", right)
}
