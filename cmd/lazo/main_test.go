package main_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/install"
)

var lazo string // the built command

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "lazo-command-*")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		lazo = filepath.Join(dir, "lazo")
		if out, err := exec.Command("go", "build", "-ldflags=-w", "-o", lazo, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s%v\n", out, err)
			return 1
		}
		return m.Run()
	}())
}

// result has the outcome of a command.
type result struct {
	code           int
	stdout, stderr string
}

func run(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(lazo, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// cpuPlugin is the plugin that make setup installs.
func cpuPlugin(t *testing.T) install.Plugin {
	t.Helper()
	plugin, err := install.Find("cpu", "")
	require.NoError(t, err, "these tests need the CPU plugin: make setup")
	return plugin
}

func TestUsage(t *testing.T) {
	rows := []struct {
		name string
		args []string
		code int
		want string // in the one line of stderr
	}{
		{"nothing", nil, 2, `"install", "doctor", "hlo", "plan", "ckpt"`},
		{"unknown command", []string{"train"}, 2, "train"},
		{"unknown flag", []string{"install", "--nope"}, 2, "--nope"},
		{"unknown plugin", []string{"install", "rocm"}, 2, `"cuda12"`},
		{"two plugins", []string{"install", "cpu", "tpu"}, 2, "tpu"},
		{"flag without value", []string{"install", "--from"}, 2, "--from"},
		{"file that is not there", []string{"install", "--prefix", t.TempDir(), "--from", "/none.whl"}, 1, "/none.whl"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got := run(t, row.args...)
			assert.Equal(t, row.code, got.code)
			assert.Empty(t, got.stdout)
			assert.Contains(t, got.stderr, row.want)
			assert.Equal(t, 1, strings.Count(got.stderr, "\n"), got.stderr)
		})
	}
}

func TestHelp(t *testing.T) {
	got := run(t, "install", "--help")
	assert.Zero(t, got.code)
	for _, flag := range []string{"--check", "--prefix", "--from", "--index-url", "--sha256", "--force"} {
		assert.Contains(t, got.stdout, flag)
	}
}

// golden replaces what differs between machines and runs.
func golden(text string) string {
	for _, r := range []struct{ pattern, by string }{
		{`with go1\.\S+ [^ ;]+`, "with GO"},
		{`/\S*/\S+\.so`, "PATH"},
		{`[0-9a-f]{64}`, "DIGEST"},
		{`(lazo +)\S+`, "${1}VERSION"},
		{`\d+\.\d+ GiB`, "N GiB"},
		{`\d+\.\d GFLOP`, "N GFLOP"},
		{`(?m)^limits    .*\n`, ""},
		{`(?m)^devices   .*\n(^          \d.*\n)+`, "DEVICES\n"},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.by)
	}
	return text
}

const versions = `lazo      VERSION
go        built with GO; needs go1.26.5 or newer
GoMLX     v0.28.8
compute   v0.1.6
go-xla    v0.4.5
PJRT API  0.81 or a newer 0.x
`

func TestDoctor(t *testing.T) {
	installed := cpuPlugin(t)
	got := run(t, "doctor")
	assert.Equal(t, 0, got.code, got.stderr)
	assert.Empty(t, cmp.Diff(versions+fmt.Sprintf(`plugin    cpu %s, PJRT API %s: PATH
digest    ok, sha256 DIGEST
probe     ok, platform cpu, PJRT API %[2]s
DEVICES
memory    host: N GiB, N GiB free; devices: not reported by the plugin
matmul    1024 x 1024 float32: N GFLOP/s on the first device, best of 5
result    ok
`, installed.Version, installed.API), golden(got.stdout)))
	assert.Empty(t, got.stderr)
	got = run(t, "doctor", "--plugin", "go")
	assert.Equal(t, 0, got.code, got.stderr)
	assert.Contains(t, got.stdout, "pure-Go")
}

func TestDoctorFindsProblems(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", "")
	text := filepath.Join(t.TempDir(), "plugin.so")
	require.NoError(t, os.WriteFile(text, []byte("text"), 0o600))
	rows := []struct {
		name string
		args []string
		want string
	}{
		{"nothing installed", []string{"doctor"}, "cmd/lazo install cpu"},
		{"no TPU plugin", []string{"doctor", "--plugin", "tpu"}, "cmd/lazo install tpu"},
		{"nothing that compiles alone", []string{"doctor", "--plugin", "cuda_compile"}, "lazo install cuda_compile"},
		{"damaged file", []string{"doctor", "--plugin", text}, "use another library"},
		{"no file", []string{"doctor", "--plugin", text + ".no"}, "no PJRT plugin found"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got := run(t, row.args...)
			assert.Equal(t, 1, got.code)
			assert.Contains(t, got.stdout, "problem")
			assert.Contains(t, got.stdout, row.want)
			assert.NotContains(t, got.stdout, "result    ok")
		})
	}
	got := run(t, "install", "--check")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "lazo install cpu")
}

// TestF52_doctorTellsLimits: those of addresses; TestCgroupLimit has the others.
func TestF52_doctorTellsLimits(t *testing.T) {
	cpuPlugin(t)
	out, err := exec.Command("bash", "-c", `ulimit -v 8388608; exec "$0" doctor`, lazo).CombinedOutput()
	require.NoError(t, err, "%s", out)
	line := regexp.MustCompile(`(?m)^limits    8\.0 GiB of addresses \(ulimit -v\).*$`).Find(out)
	assert.NotEmpty(t, line, "%s", out)
	t.Logf("F52: the doctor says: %s", line)
}

// TestR22_doctorKnowsFlagsFromDamage: flags that the plugin does not know are the fault, and not the plugin.
func TestR22_doctorKnowsFlagsFromDamage(t *testing.T) {
	cpuPlugin(t)
	t.Setenv("XLA_FLAGS", "--xla_no_such_flag=1")
	got := run(t, "doctor")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stdout, "XLA_FLAGS names --xla_no_such_flag=1, which this plugin does not know\nto do     unset XLA_FLAGS")
	assert.NotContains(t, got.stdout, "damaged")
	assert.NotContains(t, got.stdout, "--force")
}

// The whole way without network: a library that the table knows by its digest.
func TestInstallFromFile(t *testing.T) {
	library, prefix := cpuPlugin(t).Path, t.TempDir()
	t.Setenv("HOME", t.TempDir())
	got := run(t, "install", "cpu", "--prefix", prefix, "--from", library)
	require.Equal(t, 0, got.code, got.stderr)
	installed, err := install.Find("cpu", prefix)
	require.NoError(t, err)
	assert.Contains(t, got.stdout, installed.Path)
	assert.True(t, strings.HasPrefix(installed.Path, prefix))
	got = run(t, "install", "--check", "--prefix", prefix)
	assert.Equal(t, 0, got.code)
	assert.NotContains(t, got.stdout, "note ")
	assert.Equal(t, 0, run(t, "doctor", "--prefix", prefix).code)

	require.NoError(t, os.Truncate(installed.Path, 100_000_000))
	for _, args := range [][]string{{"install", "--check"}, {"doctor"}} {
		got := run(t, append(args, "--prefix", prefix)...)
		assert.Equal(t, 1, got.code, "%v: %s", args, got.stdout)
		assert.Contains(t, got.stdout+got.stderr, "damaged")
	}
	require.Equal(t, 0, run(t, "install", "cpu", "--prefix", prefix, "--from", library).code)
	assert.Equal(t, 0, run(t, "doctor", "--prefix", prefix).code, "installing again mends it")

	// A receipt of an earlier table: the plugin still works, and the check reports it.
	name := filepath.Join(prefix, "cpu", "receipt.json")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	wheels := regexp.MustCompile(`(?s)"wheels": \[.*?\]`).ReplaceAllString(string(text), `"wheels": ["`+strings.Repeat("0", 64)+`"]`)
	earlier := strings.Replace(wheels, `"version": "`+installed.Version, `"version": "0.0.0`, 1)
	require.NoError(t, os.WriteFile(name, []byte(earlier), 0o640))
	for _, args := range [][]string{{"install", "--check"}, {"doctor"}} {
		got := run(t, append(args, "--prefix", prefix)...)
		assert.Equal(t, 0, got.code, got.stdout)
		assert.Contains(t, got.stdout, "note      lazo install cpu brings version "+installed.Version+" now; until then version 0.0.0 is used\n")
	}
	require.NoError(t, os.WriteFile(name, text, 0o640))

	// Text from a receipt cannot control the terminal, and a receipt of another kind is refused.
	receipt := filepath.Join(prefix, "cpu", "receipt.json")
	sound, err := os.ReadFile(receipt)
	require.NoError(t, err)
	forge := func(field, value string) result {
		forged := regexp.MustCompile(`"`+field+`": "[^"]*"`).ReplaceAllLiteral(sound, []byte(`"`+field+`": "`+value+`"`))
		require.NotEqual(t, string(sound), string(forged))
		require.NoError(t, os.WriteFile(receipt, forged, 0o640))
		return run(t, "doctor", "--prefix", prefix)
	}
	got = forge("version", `1\u001b[2J\nresult    ok`)
	assert.Equal(t, 0, got.code)
	assert.Contains(t, got.stdout, `cpu 1\x1b[2J\nresult    ok, PJRT API`)
	got = forge("kind", "tpu")
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stdout, receipt+`: it says the kind "tpu", in the folder of "cpu"`)
	assert.Contains(t, got.stdout, "install cpu --force")
	assert.NotContains(t, got.stdout, "not installed")
}

// A plugin that loads and finds no device may be installed, but not for the CPU,
// which is always there.
func TestInstallWithoutDevice(t *testing.T) {
	library := build(t, `#include <stddef.h>
#include <string.h>
static struct { size_t size; void *ext; size_t vsize; void *vext; int major, minor; void *functions[200]; } api = {1640, 0, 24, 0, 0, 81};
static void *message(char *args) { *(char **)(args + 24) = "no such device"; *(size_t *)(args + 32) = 14; return 0; }
static void *code(char *args) { *(int *)(args + 24) = 9; return 0; }
static void destroy(void *args) {}
static void *failure(void *args) { return (void *)1; }
void *GetPjrtApi(void) {
	for (int i = 0; i < 200; i++) api.functions[i] = failure;
	api.functions[0] = destroy; api.functions[1] = message; api.functions[2] = code;
	return &api;
}`)
	data, err := os.ReadFile(library)
	require.NoError(t, err)
	prefix, digest := t.TempDir(), fmt.Sprintf("%x", sha256.Sum256(data))
	got := run(t, "install", "cpu", "--prefix", prefix, "--from", library, "--sha256", digest)
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "no such device")
	assert.Equal(t, 1, run(t, "install", "--check", "--prefix", prefix).code)
	got = run(t, "install", "cuda", "--prefix", prefix, "--from", library, "--sha256", digest)
	assert.Equal(t, 0, got.code, got.stderr)
	assert.Contains(t, got.stderr, "warning")
	assert.Contains(t, got.stderr, "no such device")
	got = run(t, "doctor", "--plugin", "cuda", "--prefix", prefix)
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stdout, "FAILED_PRECONDITION: no such device")
	assert.Contains(t, got.stdout, "driver")
}

// build compiles a shared library.
func build(t *testing.T, code string) string {
	t.Helper()
	source, library := filepath.Join(t.TempDir(), "plugin.c"), filepath.Join(t.TempDir(), "plugin.so")
	require.NoError(t, os.WriteFile(source, []byte(code), 0o600))
	compiler, err := exec.Command("go", "env", "CC").Output()
	require.NoError(t, err)
	out, err := exec.Command(strings.TrimSpace(string(compiler)), "-shared", "-fPIC", "-w", "-o", library, source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return library
}

func TestSignals(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	library := build(t, fmt.Sprintf(`#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void load(void) { fclose(fopen(%q, "w")); for (;;) pause(); }`, started))
	for number, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		var stderr bytes.Buffer
		cmd := exec.Command(lazo, "doctor", "--plugin", library)
		cmd.Stderr = &stderr
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool { return os.Remove(started) == nil }, time.Minute, 10*time.Millisecond)
		require.NoError(t, cmd.Process.Signal(number))
		require.Error(t, cmd.Wait())
		assert.Equal(t, code, cmd.ProcessState.ExitCode())
		assert.Equal(t, "lazo: interrupted\n", stderr.String())
	}
}
