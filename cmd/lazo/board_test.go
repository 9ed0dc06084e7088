package main_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"
)

// The command's page follows a folder that another process, this one, writes. A signal ends the command.
func TestBoard(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		file := must.M1(os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644))
		must.M1(file.WriteString(text))
		require.NoError(t, file.Close())
	}
	row := func(step int) string {
		return fmt.Sprintf(`{"elapsed.steps":%d,"losses.loss":%g}`+"\n", step, 1/float64(step))
	}
	write("a/log.jsonl", row(1))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, lazo, "board", dir, "--listen", "127.0.0.1:0", "--every", "10ms")
	var stderr strings.Builder
	c.Stderr = &stderr
	out := must.M1(c.StdoutPipe())
	require.NoError(t, c.Start())
	address := strings.TrimSpace(must.M1(bufio.NewReader(out).ReadString('\n')))
	require.NotContains(t, address, "#", "reading on this machine needs no token")
	r := must.M1(http.NewRequestWithContext(ctx, "GET", address+"events", nil))
	answer := must.M1(http.DefaultClient.Do(r))
	defer answer.Body.Close()
	in := bufio.NewScanner(answer.Body)
	until := func(part string) {
		t.Helper()
		for in.Scan() {
			if strings.Contains(in.Text(), part) {
				return
			}
		}
		t.Fatalf("no event with %s: %v\n%s", part, in.Err(), stderr.String())
	}
	until(`"name":"a"`)
	write("a/log.jsonl", row(2)+row(3))
	until(`"steps":3`)
	write("b/log.jsonl", row(7))
	until(`"name":"b"`)
	write("a/log.jsonl", "damaged\n")
	until("log.jsonl: ")
	require.NoError(t, c.Process.Signal(syscall.SIGINT))
	err := c.Wait()
	require.Equal(t, 130, c.ProcessState.ExitCode(), "%v %s", err, stderr.String())
}

func TestBoard_refuses(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{filepath.Join(dir, "none")}, 2, "there is no folder"},
		{[]string{dir, "--listen", "9465"}, 1, "expected HOST:PORT"},
		{[]string{dir, "--every", "0s"}, 1, "expected more than 0"},
	} {
		out, err := exec.CommandContext(t.Context(), lazo, append([]string{"board"}, c.args...)...).CombinedOutput()
		var ended *exec.ExitError
		require.ErrorAs(t, err, &ended)
		require.Equal(t, c.code, ended.ExitCode())
		require.Contains(t, string(out), c.says)
	}
}
