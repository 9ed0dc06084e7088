package probe_test

import (
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/internal/probe"
)

// helperName is the argv[0] under which this test binary probes argv[1] and prints the result, as another user or as a
// process to be killed.
const helperName = "probe_test: helper"

type outcome struct {
	Text    string
	Typed   bool
	Damaged bool
}

func TestMain(m *testing.M) {
	if os.Args[0] == helperName {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, err := probe.Run(ctx, os.Args[1])
		cancel()
		var typed *probe.Error
		_ = json.NewEncoder(os.Stdout).Encode(outcome{
			Text:  fmt.Sprint(err),
			Typed: errors.As(err, &typed), Damaged: errors.Is(err, probe.ErrDamaged),
		})
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// helper is this test binary as [helperName].
func helper(path string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{helperName, path}
	return cmd
}

// cpuPlugin is the plugin that make setup installs.
func cpuPlugin(t *testing.T) string {
	t.Helper()
	plugin, err := install.Find("cpu", "")
	require.NoError(t, err, "these tests need the CPU plugin: make setup")
	return plugin.Path
}

// build compiles a small plugin from C source.
func build(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	input, output := filepath.Join(dir, "plugin.c"), filepath.Join(dir, "plugin.so")
	require.NoError(t, os.WriteFile(input, []byte(source), 0o600))
	compiler, err := exec.Command("go", "env", "CC").Output()
	require.NoError(t, err)
	out, err := exec.Command(strings.TrimSpace(string(compiler)), "-shared", "-fPIC", "-w", "-o", output, input, "-ldl").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return output
}

// table is a plugin with only an API table of this size and version.
func table(size, major, minor int) string {
	return fmt.Sprintf(`#include <stddef.h>
struct { size_t size; void *ext; size_t vsize; void *vext; int major, minor; char rest[4096]; } api = {%d, 0, 24, 0, %d, %d};
void *GetPjrtApi(void) { return &api; }`, size, major, minor)
}

// constructor is a plugin that runs body when it is loaded.
func constructor(body string) string {
	return `#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void load(void) { ` + body + ` }
void *GetPjrtApi(void) { return 0; }`
}

// wrapper is a plugin that returns the table of the one at path, as version major.minor and larger by more bytes.
func wrapper(path string, major, minor, more int) string {
	return fmt.Sprintf(`#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
static union { struct { size_t size; void *ext; size_t vsize; void *vext; int major, minor; } head; char all[1 << 16]; } api;
void *GetPjrtApi(void) {
	void *(*get)(void) = dlsym(dlopen(%q, RTLD_LAZY | RTLD_LOCAL), "GetPjrtApi");
	size_t *real = get();
	memcpy(&api, real, *real);
	api.head.size += %d; api.head.major = %d; api.head.minor = %d;
	return &api;
}`, path, more, major, minor)
}

// patched copies a small library with one byte changed.
func patched(t *testing.T, library string, offset int, value byte) string {
	t.Helper()
	data, err := os.ReadFile(library)
	require.NoError(t, err)
	data[offset] = value
	name := filepath.Join(t.TempDir(), "patched.so")
	require.NoError(t, os.WriteFile(name, data, 0o600))
	return name
}

// private copies a large library to be damaged.
func private(t *testing.T, library string) (name string, size int64) {
	t.Helper()
	from, err := os.Open(library)
	require.NoError(t, err)
	defer from.Close()
	name = filepath.Join(t.TempDir(), "copy.so")
	to, err := os.Create(name)
	require.NoError(t, err)
	size, err = io.Copy(to, from)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	return name, size
}

// section returns a section of a library.
func section(t *testing.T, library, name string) *elf.Section {
	t.Helper()
	file, err := elf.Open(library)
	require.NoError(t, err)
	defer file.Close()
	found := file.Section(name)
	require.NotNil(t, found, name)
	return found
}

// noChildren fails if a child process, alive or dead, is left.
func noChildren(t *testing.T) {
	t.Helper()
	pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
	require.ErrorIs(t, err, syscall.ECHILD, "process %d was left", pid)
}

// gone reports whether the process has ended, even if no process waited for it.
func gone(pid string) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	return err != nil || strings.Contains(string(stat), ") Z ")
}
