package callbacks_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// A real terminal, which changes its width between two lines and then goes away.
func TestF34_barOnAPseudoTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	master, terminal := openTerminal(t)
	resize := func(columns uint16) {
		size := [4]uint16{24, columns}
		control(t, terminal, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	}
	var out bytes.Buffer
	var reader sync.WaitGroup
	reader.Go(func() { _, _ = out.ReadFrom(master) })

	resize(100)
	bar := callbacks.NewBar(terminal)
	show := func(step int64) {
		report := loop.Report{Elapsed: loop.Elapsed{Steps: step, Samples: step, Time: time.Duration(step) * time.Second}, Until: loop.Steps(9), Logs: metric("accuracy", 0.5)}
		require.NoError(t, bar.Watch(t.Context(), report))
	}
	show(1)
	resize(20)
	show(2)
	resize(0)
	show(3)
	require.NoError(t, terminal.Close())
	show(4) // the terminal is closed: no harm
	reader.Wait()
	require.NoError(t, master.Close())
	lines := strings.Split(out.String(), "\r")[1:]
	require.Equal(t, []string{
		"1/9 [==......................] - accuracy: 0.5000\x1b[K",
		"2/9 - ETA 7.0s - ac\x1b[K",
		"3/9 [========................] - ETA 6.0s - accuracy: 0.5000 - 1 examples/s\x1b[K",
	}, lines)
}

func control(t *testing.T, f *os.File, request uintptr, at unsafe.Pointer) {
	t.Helper()
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(at))
	require.Zero(t, errno)
}

// openTerminal opens a pseudo terminal, from both sides.
func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err, "this test needs pseudo terminals (/dev/pts)")
	var unlock, number int32
	control(t, master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	control(t, master, syscall.TIOCGPTN, unsafe.Pointer(&number))
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return master, terminal
}

// Colours are for terminals that have them, and for users who do not forbid them; a dumb terminal gets plain lines.
func TestBar_environment(t *testing.T) {
	for _, row := range []struct {
		term, noColor  string
		live, coloured bool
	}{
		{"xterm-256color", "", true, true}, {"tmux", "", true, true}, {"linux", "", true, true},
		{"xterm-256color", "1", true, false}, {"vt100", "", true, false}, {"", "", true, false},
		{"dumb", "", false, false},
	} {
		t.Setenv("TERM", row.term)
		t.Setenv("NO_COLOR", row.noColor)
		master, terminal := openTerminal(t)
		var out bytes.Buffer
		var reader sync.WaitGroup
		reader.Go(func() { _, _ = out.ReadFrom(master) })
		bar := callbacks.NewBar(terminal, callbacks.Bar{Epoch: loop.Steps(2)})
		for step := range int64(2) {
			require.NoError(t, bar.Watch(t.Context(), loop.Report{Elapsed: at(step + 1), Logs: metric("accuracy", 0.5)}))
		}
		require.NoError(t, terminal.Close())
		reader.Wait()
		require.NoError(t, master.Close())
		require.Equal(t, row.live, strings.Contains(out.String(), "\x1b[J"), "%+v: %q", row, out.String())
		require.Equal(t, row.coloured, strings.Contains(out.String(), "\x1b[1m"), "%+v: %q", row, out.String())
		require.Contains(t, out.String(), "accuracy: 0.5000")
	}
}
