//go:build nightly

package prometheus

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// S52: a real Prometheus scrapes the metrics, answers each query of the dashboard, and its tool finds no fault in the
// text. It needs Debian's package prometheus.
func TestPrometheus(t *testing.T) {
	binary, err := exec.LookPath("prometheus")
	require.NoError(t, err, "install Prometheus: apt-get install prometheus")
	m := New()
	m.devices.of = append(m.devices.of, card{5})
	m.Saved("digits")(100, time.Second, nil)
	server, err := m.Listen(":0")
	require.NoError(t, err)
	defer server.Close()
	_, err = loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, slow(4, func(int) {}), m.Training("digits", loop.EachStep))
	require.NoError(t, err)
	handler := served(t, m)
	for range 2 {
		request, err := http.NewRequest("POST", "http://localhost/v2/models/digits/infer", strings.NewReader(inference))
		require.NoError(t, err)
		handler.ServeHTTP(discarding{}, request)
	}

	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil,
		"scrape_configs:\n- job_name: lazo\n  scrape_interval: 1s\n  static_configs:\n  - targets: [%q]\n", server.Addr()), 0o600))
	cmd := exec.Command(binary, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	log, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	address := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if found := regexp.MustCompile(`msg="Listening on" address=(\S+)`).FindStringSubmatch(lines.Text()); found != nil {
				address <- found[1]
			}
		}
	}()
	var at string
	select {
	case at = <-address:
	case <-time.After(time.Minute):
		t.Fatal("Prometheus does not listen")
	}
	query := func(expr string) (status string, found int) {
		answer, err := http.Get("http://" + at + "/api/v1/query?query=" + url.QueryEscape(expr))
		if err != nil {
			return err.Error(), 0
		}
		defer answer.Body.Close()
		var result struct {
			Status string
			Data   struct{ Result []any }
		}
		if err := json.NewDecoder(answer.Body).Decode(&result); err != nil {
			return err.Error(), 0
		}
		return result.Status, len(result.Data.Result)
	}
	require.Eventually(t, func() bool {
		_, found := query(`lazo_training_steps_total{run="digits"} == 4 and on() up == 1`)
		return found == 1
	}, time.Minute, 100*time.Millisecond)
	for _, name := range names(m) {
		if strings.HasPrefix(name, "lazo_serving_") && strings.HasSuffix(name, "_seconds") {
			name += "_count"
		}
		status, found := query(name)
		require.Equal(t, "success", status, name)
		require.Positive(t, found, name)
	}
	for _, expr := range expressions(t) {
		status, _ := query(strings.ReplaceAll(expr, "$instance", ".*"))
		require.Equal(t, "success", status, expr)
	}
	answer, err := http.Get("http://" + server.Addr().String() + "/metrics")
	require.NoError(t, err)
	defer answer.Body.Close()
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = answer.Body
	text, _ := check.CombinedOutput()
	require.NotRegexp(t, `(?m)^lazo_`, string(text))
	t.Logf("S52: Prometheus has %d metrics, and answers %d queries of the dashboard", len(names(m)), len(expressions(t)))
}

type discarding struct{}

func (discarding) Header() http.Header         { return http.Header{} }
func (discarding) Write(b []byte) (int, error) { return len(b), nil }
func (discarding) WriteHeader(int)             {}
