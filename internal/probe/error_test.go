package probe_test

import (
	"context"
	"errors"
	"fmt"
	rand "math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/probe"
)

func TestF23_DamagedPlugins(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	fifo := filepath.Join(dir, "fifo.so")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	sound := build(t, table(pjrt.MinTableSize, pjrt.Major, pjrt.MinMinor))
	dead := probe.ErrDamaged
	rows := []struct {
		name, path string
		kind       error
		also       error  // a cause that errors.Is finds
		text       string // part of the message
	}{
		{"missing", filepath.Join(dir, "none.so"), pjrt.ErrNotFound, nil, "no such plugin file"},
		{"text", file("text.so", "hello, world\n"), dead, pjrt.ErrNotLoadable, "13 bytes"},
		{"empty", file("empty.so", ""), dead, pjrt.ErrNotLoadable, "0 bytes"},
		{"ELF magic only", file("magic.so", "\x7fELF"), dead, pjrt.ErrNotLoadable, ""},
		{"directory", dir, dead, pjrt.ErrNotLoadable, "not a regular file"},
		{"pipe", fifo, dead, pjrt.ErrNotLoadable, "not a regular file"},
		{"other processor", patched(t, sound, 18, 0x16), dead, pjrt.ErrNotLoadable, "EM_S390"},
		{"32 bits", patched(t, sound, 4, 1), dead, pjrt.ErrNotLoadable, ""},
		{"object file", patched(t, sound, 16, 1), dead, pjrt.ErrNotLoadable, "ET_REL"},
		{"missing symbol at load", build(t, "extern void nowhere(void); void (*f)(void) = nowhere;"), dead, pjrt.ErrNotLoadable, "nowhere"},
		{"no GetPjrtApi", build(t, "int other(void) { return 1; }"), dead, pjrt.ErrNoSymbol, "GetPjrtApi"},
		{"NULL table", build(t, "void *GetPjrtApi(void) { return 0; }"), dead, pjrt.ErrNoTable, "no API table"},
		{"bad pointer as table", build(t, "void *GetPjrtApi(void) { return (void *)16; }"), dead, nil, "SIGSEGV"},
		{"table without functions", sound, dead, nil, "its table lacks PJRT_"},
		{"SIGSEGV at load", build(t, constructor(`*(volatile int *)0 = 1;`)), dead, nil, "SIGSEGV"},
		{"SIGBUS at load", build(t, constructor(`raise(SIGBUS);`)), dead, nil, "SIGBUS"},
		{"abort at load", build(t, constructor(`fputs("the last words", stderr); abort();`)), dead, nil, "the last words"},
		{"SIGKILL at load", build(t, constructor(`raise(SIGKILL);`)), dead, nil, "killed"},
		{"exit 0 at load", build(t, constructor(`_exit(0);`)), dead, nil, "answer cannot be read"},
		{"exit 7 at load", build(t, constructor(`exit(7);`)), dead, nil, "exit status 7"},
		{"nonsense as answer", build(t, constructor(`write(3, "{]\n", 3); _exit(0);`)), dead, nil, "answer cannot be read"},
		{"endless answer", build(t, constructor(`char b[4096]; memset(b, ' ', 4096); while (write(3, b, 4096) > 0);`)), dead, nil, "more than 1048576 bytes"},
		{"10 MB of messages", build(t, constructor(`for (int i = 0; i < 100000; i++) fputs("noise noise noise noise noise noise noise noise noise noise noise noise noise noise noise noise", stderr); fflush(stderr); _exit(9);`)), dead, nil, "exit status 9"},
	}
	typed := 0
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := probe.Run(t.Context(), row.path)
			failure := wantTyped(t, row.path, err)
			require.ErrorIs(t, err, row.kind)
			assert.Equal(t, row.kind, failure.Kind)
			if row.also != nil {
				require.ErrorIs(t, err, row.also)
			}
			assert.Contains(t, err.Error(), row.text)
			typed++
		})
	}
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	assert.Empty(t, left, "temporary files")
	t.Logf("F23: %d cases, %d typed errors, 0 deaths of this process, %d temporary files left", len(rows), typed, len(left))
}

// A hanging library, also with a process that holds the child's files, is ended at the deadline with everything it
// started.
func TestF23_HangingPlugins(t *testing.T) {
	rows := []struct{ name, body string }{
		{"constructor", `for (;;) pause();`},
		{"busy constructor", `for (volatile int i = 0;; i++);`},
		{"deaf constructor", `for (int i = 1; i < 32; i++) signal(i, SIG_IGN); for (;;) pause();`},
		{"second process", `if (fork() == 0) { FILE *f = fopen(PID, "w"); fprintf(f, "%d", getpid()); fclose(f); } for (;;) pause();`},
		{"second process alone", `if (fork() == 0) { FILE *f = fopen(PID, "w"); fprintf(f, "%d", getpid()); fclose(f); for (;;) pause(); } usleep(100000); _exit(0);`},
		{"second process that left the group", `if (fork() == 0) { setsid(); FILE *f = fopen(PID, "w"); fprintf(f, "%d", getpid()); fclose(f); } for (;;) pause();`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			pidFile := filepath.Join(t.TempDir(), "pid")
			path := build(t, fmt.Sprintf("#define PID %q\n", pidFile)+constructor(row.body))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := probe.Run(ctx, path)
			failure := wantTyped(t, path, err)
			assert.Equal(t, probe.ErrTimeout, failure.Kind)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			if pid, err := os.ReadFile(pidFile); err == nil {
				if strings.Contains(row.name, "left the group") { // cannot be killed: only Run's return is checked
					number, err := strconv.Atoi(string(pid))
					require.NoError(t, err)
					require.NoError(t, syscall.Kill(number, syscall.SIGKILL))
				}
				require.Eventually(t, func() bool { return gone(string(pid)) }, time.Minute, 10*time.Millisecond)
			}
		})
	}
	t.Logf("F23: %d hanging plugins, %d typed errors, 0 processes left", len(rows), len(rows))
}

func TestF23_TruncatedPlugin(t *testing.T) {
	path, size := private(t, cpuPlugin(t))
	sizes := []int64{size - 1, size - 1<<20, 240_000_000, 100_000_000, 1_000_000, 4096, 64, 1}
	for _, n := range sizes { // descending, so that one copy serves all
		require.NoError(t, os.Truncate(path, n))
		_, err := probe.Run(t.Context(), path)
		failure := wantTyped(t, path, err)
		assert.Equal(t, probe.ErrDamaged, failure.Kind, "%d bytes", n)
	}
	t.Logf("F23: %d truncations of a library of %d bytes: all typed errors, 0 deaths of this process", len(sizes), size)
}

// One bit of the real library is flipped at a time. Most bits have no effect; the test checks that this process lives
// and that errors are typed.
func TestF23_FlippedBits(t *testing.T) {
	path, size := private(t, cpuPlugin(t))
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer file.Close()
	seed := flipSeed()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) // a test
	dynamic := section(t, path, ".dynamic")
	for _, part := range []struct {
		name       string
		start, end int64
	}{
		{"anywhere", 0, size},
		{"in the headers", 0, 64 + 10*56},
		{"in the dynamic section", int64(dynamic.Offset), int64(dynamic.Offset + dynamic.FileSize)},
	} {
		works, kinds := 0, map[error]int{}
		for range flips {
			at, bit := part.start+random.Int64N(part.end-part.start), byte(1)<<random.IntN(8)
			var was [1]byte
			_, err := file.ReadAt(was[:], at)
			require.NoError(t, err)
			_, err = file.WriteAt([]byte{was[0] ^ bit}, at)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			if _, err = probe.Run(ctx, path); err == nil {
				works++
				noChildren(t)
			} else {
				kinds[wantTyped(t, path, err).Kind]++
			}
			cancel()
			_, err = file.WriteAt(was[:], at)
			require.NoError(t, err)
		}
		t.Logf("F23: %d flips %s: %d still work, others %v; 0 deaths of this process", flips, part.name, works, kinds)
	}
	_, err = probe.Run(t.Context(), path)
	require.NoError(t, err, "the flips were not undone")
}

func TestErrorTexts(t *testing.T) {
	_, err := probe.Run(t.Context(), "/nowhere/plugin.so")
	require.EqualError(t, err, "probe: /nowhere/plugin.so: no such plugin file")
	_, err = probe.Run(t.Context(), build(t, constructor(`fputs("cannot find libother", stderr); abort();`)))
	assert.Equal(t, 1, strings.Count(err.Error(), "cannot find libother"))
	assert.True(t, errors.Is(err, probe.ErrDamaged))
}
