//go:build nightly && linux

package callbacks_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/golden"
)

const tmuxChild = "LAZO_TEST_TMUX"

// The run in tmux: it waits at each moment until it was looked at.
func TestBar_screensChild(t *testing.T) {
	dir := os.Getenv(tmuxChild)
	if dir == "" {
		return // it is the other test's child
	}
	ready, err := os.OpenFile(filepath.Join(dir, "ready"), os.O_WRONLY, 0)
	require.NoError(t, err)
	goOn, err := os.OpenFile(filepath.Join(dir, "on"), os.O_RDONLY, 0)
	require.NoError(t, err)
	fmt.Fprint(os.Stderr, strings.Repeat("\n", screenRows)) // a terminal that is in use, where the last row is written on
	training(t, os.Stderr, func(moment string) {
		_, err := fmt.Fprintln(ready, moment)
		require.NoError(t, err)
		_, err = goOn.Read(make([]byte, 1))
		require.NoError(t, err)
	})
}

// A real terminal, tmux, shows the same as the emulated one of [TestBar_screens]. If it is resized during a run, no
// remains of the bar are left.
func TestBar_screensInTmux(t *testing.T) {
	_, err := exec.LookPath("tmux")
	require.NoError(t, err, "this test needs tmux: apt-get install tmux")
	for _, columns := range []int{60, 80, 120} {
		golden.Equal(t, screensFile(columns), inTmux(t, columns, "== %[2]s\n%[3]s", nil))
	}
	golden.Equal(t, "testdata/bar_resized_tmux.golden", inTmux(t, 120, "== %d columns, %s\n%s", resized))
}

// inTmux returns the screens at the moments of a run, each in a format with columns, moment and screen.
func inTmux(t *testing.T, columns int, format string, resized map[string]int) string {
	dir := t.TempDir()
	tmux := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "tmux", append([]string{"-S", filepath.Join(dir, "socket"), "-f", os.DevNull}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	for _, name := range []string{"ready", "on"} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
	}
	tmux("new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(screenRows), "-e", tmuxChild+"="+dir,
		os.Args[0], "-test.run=^TestBar_screensChild$", "-test.timeout=2m")
	defer func() { _ = exec.Command("tmux", "-S", filepath.Join(dir, "socket"), "kill-server").Run() }()
	device := strings.TrimSpace(tmux("display-message", "-p", "#{pane_tty}"))
	moments, err := os.OpenFile(filepath.Join(dir, "ready"), os.O_RDONLY, 0)
	require.NoError(t, err)
	defer moments.Close()
	on, err := os.OpenFile(filepath.Join(dir, "on"), os.O_WRONLY, 0)
	require.NoError(t, err)
	defer on.Close()

	var screens strings.Builder
	lines := bufio.NewReader(moments)
	for moment := ""; moment != "the end"; {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		moment = strings.TrimSpace(line)
		fmt.Fprintf(&screens, format, columns, moment, settled(t, func() string { return screenText(tmux("capture-pane", "-p")) }))
		if to, ok := resized[moment]; ok {
			columns = to
			tmux("resize-window", "-x", fmt.Sprint(to), "-y", fmt.Sprint(screenRows))
			// tmux informs the terminal's program a moment later.
			require.Eventually(t, func() bool {
				size, err := exec.CommandContext(t.Context(), "stty", "-F", device, "size").Output()
				return err == nil && strings.TrimSpace(string(size)) == fmt.Sprintf("%d %d", screenRows, to)
			}, 10*time.Second, 10*time.Millisecond)
		}
		_, err = on.Write([]byte{1})
		require.NoError(t, err)
	}
	return screens.String()
}

// settled waits until a function returns the same three times in a row: tmux takes a moment to show output.
func settled(t *testing.T, look func() string) (screen string) {
	same := 0
	require.Eventually(t, func() bool {
		next := look()
		if same++; next != screen {
			screen, same = next, 1
		}
		return same == 3
	}, 10*time.Second, 50*time.Millisecond)
	return screen
}
