package pjrt

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func init() { child = crash }

// raise sends a signal to one thread of this process, like abort or a fault.
func raise(thread int, s syscall.Signal) {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(thread), uintptr(s)); errno != 0 {
		panic(errno)
	}
}

// ofThePlugin returns a thread that the plugin started.
func ofThePlugin() int {
	own, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		panic(err)
	}
	dirs, err := filepath.Glob("/proc/self/task/*")
	if err != nil {
		panic(err)
	}
	for _, dir := range dirs {
		if name, err := os.ReadFile(dir + "/comm"); err == nil && !bytes.Equal(name, own) { // Go's threads have the name of their process
			thread, err := strconv.Atoi(filepath.Base(dir))
			if err != nil {
				panic(err)
			}
			return thread
		}
	}
	panic("the plugin has no thread")
}

// crash runs the task of a child process.
func crash(where, what string) {
	if what == "silent" {
		DieBySignal()
	}
	p, err := loadCPU()
	if err != nil {
		panic(err)
	}
	if _, err := p.NewClient(map[string]any{"cpu_device_count": int64(2)}, nil); err != nil {
		panic(err)
	}
	s := syscall.SIGABRT
	if number, err := strconv.Atoi(what); err == nil {
		s = syscall.Signal(number)
	}
	if what == "listened to" {
		heard := make(chan os.Signal, 1)
		signal.Notify(heard, s)
		go func() {
			fmt.Fprintf(os.Stderr, "heard %v\n", <-heard)
			os.Exit(0)
		}()
	}
	runtime.LockOSThread()
	end := func() { <-time.After(time.Minute) } // the signal comes first
	switch where {
	case "plugin":
		raise(ofThePlugin(), s)
		end()
	case "plugin, which compiles":
		compiling([]byte("module @step {"), func() { raise(ofThePlugin(), s); end() })
	case "plugin, which has compiled":
		compiling([]byte("module @step {"), func() {})
		raise(ofThePlugin(), s)
		end()
	case "plugin, which compiles five programs":
		compiling([]byte("module @a {"), func() {
			compiling([]byte("garbage"), func() {
				compiling([]byte("module @"+strings.Repeat("c", 100)+" {"), func() {
					compiling([]byte("module @d\n"), func() {
						compiling([]byte("module @e {"), func() { raise(ofThePlugin(), s); end() })
					})
				})
			})
		})
	case "Go":
		raise(syscall.Gettid(), s)
		end()
	case "Go, which compiles":
		compiling([]byte("module @step {"), func() { raise(syscall.Gettid(), s); end() })
	}
	os.Exit(3)
}

// S57: if a thread of the plugin receives a fault's signal, the process prints a line that names the compilation, and
// dies by the same signal. A fault on a thread of Go prints Go's trace and no such line.
func TestS57_deathsSpeak(t *testing.T) {
	const line = "lazo: a thread of the XLA plugin got "
	self, err := os.Executable()
	require.NoError(t, err)
	long := strings.Repeat("c", 80)
	for _, row := range []struct {
		where, what string
		signal      syscall.Signal // signal of its death; 0: it exits
		says        string         // start of its output; "": none
		contains    string
	}{
		{"plugin", "", syscall.SIGABRT, line + "SIGABRT. Go has no trace", "ulimit -v"},
		{"plugin", "11", syscall.SIGSEGV, line + "SIGSEGV. Go", ""},
		{"plugin", "7", syscall.SIGBUS, line + "SIGBUS. Go", ""},
		{"plugin", "8", syscall.SIGFPE, line + "SIGFPE. Go", ""},
		{"plugin", "silent", syscall.SIGABRT, "", ""},
		{"plugin, which compiles", "", syscall.SIGABRT, line + "SIGABRT while the plugin compiled step. Go", ""},
		{"plugin, which has compiled", "", syscall.SIGABRT, line + "SIGABRT. Go", ""},
		{"plugin, which compiles five programs", "", syscall.SIGABRT, line + "SIGABRT while the plugin compiled a, a program of 7 bytes, " + long + ", d. Go", ""},
		{"Go", "", 0, "SIGABRT: abort\nPC=", "goroutine "},
		{"Go", "listened to", 0, "heard aborted\n", ""},
		{"Go, which compiles", "", 0, "SIGABRT: abort\nPC=", "crash_linux_test.go:"},
	} {
		name := row.where + ", " + row.what
		var said bytes.Buffer
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Args, cmd.Stderr = []string{childName, row.where, row.what}, &said
		if err := cmd.Run(); err != nil {
			require.ErrorAs(t, err, new(*exec.ExitError), name)
		}
		status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		require.True(t, ok)
		assert.Equal(t, row.signal != 0, status.Signaled(), "%s: %v: %s", name, status, said.String())
		if row.signal != 0 {
			assert.Equal(t, row.signal, status.Signal(), name)
		}
		if row.says == "" {
			assert.Empty(t, said.String(), name)
			continue
		}
		assert.True(t, strings.HasPrefix(said.String(), row.says), "%s: expected %q, got %q", name, row.says, said.String())
		assert.Contains(t, said.String(), row.contains, name)
		assert.Equal(t, strings.Count(row.says, line), strings.Count(said.String(), line), "%s: %s", name, said.String())
	}
}

// S57: a fault in Go code is a Go panic, although the plugin's handler comes before Go's.
func TestS57_goPanics(t *testing.T) {
	openCPU(t, 1)
	var nowhere *int
	f := func() { *nowhere = 1 }
	require.Panics(t, f)
	WithoutSignals(func() { require.Panics(t, f) })
}

// action is the kernel's struct sigaction: the handler, its flags, and what differs between machines.
type action [4]uintptr

func actionOf(s syscall.Signal) (now action) {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), 0, uintptr(unsafe.Pointer(&now)), 8, 0, 0); errno != 0 {
		panic(errno)
	}
	return now
}

func (a action) set(s syscall.Signal) {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&a)), 0, 8, 0, 0); errno != 0 {
		panic(errno)
	}
}

// S50: a library that takes signals has not taken them after its call, also during the calls of others.
func TestS50_librariesTakeNoSignals(t *testing.T) {
	signals := []syscall.Signal{syscall.SIGHUP, syscall.SIGSEGV, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE, syscall.Signal(40)}
	signal.Ignore(syscall.SIGUSR2)
	defer signal.Reset(syscall.SIGUSR2)
	before := map[syscall.Signal]action{}
	for _, s := range signals {
		before[s] = actionOf(s)
	}
	unchanged := func(when string) {
		t.Helper()
		for _, s := range signals {
			was, now := before[s], actionOf(s)
			const restorer = 0x04000000 // the C library's, of each handler that it sets, and of ignored signals too
			require.Equal(t, was[0], now[0], "%s: handler of %v", when, s)
			require.Equal(t, was[1]&^restorer, now[1]&^restorer, "%s: flags of %v", when, s)
		}
	}
	withoutStack := action{before[syscall.SIGHUP][0], before[syscall.SIGHUP][1] &^ 0x08000000} // SA_ONSTACK
	for name, taken := range map[string]action{
		"handler": {4096}, "ignored": {1}, "default": {0}, "Go's handler on the stack of a goroutine": withoutStack,
	} {
		take := func() {
			for _, s := range signals {
				taken.set(s)
			}
		}
		WithoutSignals(take)
		unchanged(name)
		WithoutSignals(func() {
			take()
			done := make(chan struct{})
			go func() {
				defer close(done)
				WithoutSignals(func() {})
			}()
			<-done
			take()
		})
		unchanged(name + ", two calls at once")
	}
	heard := make(chan os.Signal, 1)
	WithoutSignals(func() { signal.Notify(heard, syscall.SIGUSR2) })
	defer signal.Stop(heard)
	before[syscall.SIGUSR2] = before[syscall.SIGUSR1]
	unchanged("a signal that Go has taken meanwhile")
}
