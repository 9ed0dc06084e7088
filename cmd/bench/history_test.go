//lazo:norace
package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeBench reports the times, one a repeat, for any workload, after the shell text first.
func fakeBench(t *testing.T, first, times string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bench")
	text := "#!/bin/sh\n" + first + "\nfor i in " + strings.ReplaceAll(times, ",", " ") + "; do echo ready; read x; done\n" +
		`echo '{"workload":"w","unit":"s","median":` + strings.Split(times, ",")[strings.Count(times, ",")/2] + `,"values":[` + times + `]}'` + "\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
	return path
}

func checkedBy(t *testing.T, history string) (*bench, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	return &bench{repeats: 3, variants: []string{"metric", "150"}, stdout: &out, history: history, commit: "c0ffee", reference: "facade", load: 2,
		plot: filepath.Join(t.TempDir(), "history.svg")}, &out
}

func TestCheck_appendsWhatItPrints(t *testing.T) {
	history := filepath.Join(t.TempDir(), "history.jsonl")
	commands := [2]string{fakeBench(t, "", "1,2,3"), fakeBench(t, "", "2,4,5")}
	for run := 1; run <= 2; run++ {
		b, out := checkedBy(t, history)
		require.NoError(t, check(t.Context(), b, commands))
		records, err := readHistory(history)
		require.NoError(t, err)
		require.Len(t, records, 5*run)
		rows := strings.Split(strings.TrimSpace(out.String()), "\n")[2:]
		for i, r := range records[5*(run-1):] {
			require.Equal(t, rows[i], r.row())
			require.Equal(t, []any{"c0ffee", "facade", 2., 2., 4., 2.}, []any{r.Commit, r.Reference, r.Load, r.Before, r.Now, r.Ratio})
			require.NotEmpty(t, r.Processor)
		}
		require.Equal(t, "| `inplace` | 150 | s | 2 | 4 | 2.00 | 0.134 |  |", rows[4])
		picture, err := os.ReadFile(b.plot)
		require.NoError(t, err)
		for _, text := range []string{"tiny metric", "inplace 150", "facade", "c0ffee"} {
			require.Contains(t, string(picture), text)
		}
	}
	b, _ := checkedBy(t, "")
	require.NoError(t, check(t.Context(), b, commands), "without a history")
}

// With slower times the error ends the program with 3, after the records.
func TestCheck_slower(t *testing.T) {
	history := filepath.Join(t.TempDir(), "history.jsonl")
	b, out := checkedBy(t, history)
	b.repeats = 7
	require.ErrorIs(t, check(t.Context(), b, [2]string{fakeBench(t, "", "1,2,3,4,5,6,7"), fakeBench(t, "", "8,9,10,11,12,13,14")}), errSlower)
	require.Equal(t, 5, strings.Count(out.String(), "**slower**"))
	records, err := readHistory(history)
	require.NoError(t, err)
	require.Len(t, records, 5)
}

// A run keeps the workloads that it measured.
func TestCheck_keepsRecordsBeforeAnError(t *testing.T) {
	history := filepath.Join(t.TempDir(), "history.jsonl")
	b, _ := checkedBy(t, history)
	fails := fakeBench(t, `case "$*" in *mlp*) exit 1;; esac`, "1,1,1")
	require.ErrorContains(t, check(t.Context(), b, [2]string{fails, fails}), "mlp metric")
	records, err := readHistory(history)
	require.NoError(t, err)
	require.Len(t, records, 2)
}

func TestCheck_withoutHistoryOfBadLines(t *testing.T) {
	good, err := json.Marshal(record{Date: day(1), Reference: "facade", Workload: "w", comparison: comparison{Ratio: 1}})
	require.NoError(t, err)
	for _, bad := range []string{"{\n", "\n", "<<<<<<< HEAD\n", string(good), `{"date":"2026-11-30T00:00:00Z","reference":"facade","workload":"w"}` + "\n"} {
		history := filepath.Join(t.TempDir(), "history.jsonl")
		text := string(good) + "\n" + bad
		require.NoError(t, os.WriteFile(history, []byte(text), 0o600))
		b, out := checkedBy(t, history)
		require.ErrorContains(t, check(t.Context(), b, [2]string{"no", "such"}), history+":2: ", "%q", bad)
		require.Empty(t, out.String())
		left, err := os.ReadFile(history)
		require.NoError(t, err)
		require.Equal(t, text, string(left))
	}
}

func TestCheck_printsWhatItCannotWrite(t *testing.T) {
	folder := t.TempDir()
	b, _ := checkedBy(t, folder)
	require.ErrorContains(t, check(t.Context(), b, [2]string{"no", "such"}), folder, "before it measures")

	history := filepath.Join(t.TempDir(), "history.jsonl")
	b, out := checkedBy(t, history)
	removes := fakeBench(t, "[ -d '"+history+"' ] || { rm '"+history+"'; mkdir '"+history+"'; }", "1,1,1")
	require.ErrorContains(t, check(t.Context(), b, [2]string{removes, removes}), history)
	require.Contains(t, out.String(), "| `inplace` | 150 |")
	require.NoFileExists(t, b.plot)
}

func day(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }

// Ratios to several commits are not comparable.
func TestDrawHistory_ofTheNewestReference(t *testing.T) {
	var records []record
	for _, r := range []struct {
		day                 int
		reference, workload string
		ratio               float64
	}{{1, "old", "tiny", 3}, {1, "old", "gone", 1}, {2, "new", "tiny", 0.5}, {2, "new", "mlp", 1.5}, {3, "old", "tiny", 4}, {4, "new", "tiny", 0.75}} {
		records = append(records, record{Date: day(r.day), Commit: "c0ffee", Reference: r.reference, Workload: r.workload, Variant: "metric", comparison: comparison{Ratio: r.ratio}})
	}
	var page bytes.Buffer
	require.NoError(t, drawHistory(records).HTML(&page))
	text := regexp.MustCompile(`<[^>]*>\s*`).ReplaceAllString(page.String(), "|")
	require.Contains(t, text, "Step 0 is the reference new, step 2 c0ffee on 2026-11-04.")
	require.Regexp(t, `tiny metric\|+0.75\|+0.5\|+1\|`, text, "last, lowest, highest")
	require.Regexp(t, `mlp metric\|+1.5\|+1\|+1.5\|`, text)
	require.NotContains(t, text, "gone")
}

// An empty REF is the newest release's tag, not that of a nested module, or else the commit of the peers' figures.
func TestBenchCheck_takesTheLastRelease(t *testing.T) {
	root := t.TempDir()
	script, err := os.ReadFile("../../scripts/bench_check.sh")
	require.NoError(t, err)
	builder := `while [ "$1" != -o ]; do shift; done; printf '#!/bin/sh\necho "$@"\n' > "$2"; chmod +x "$2"`
	for name, text := range map[string]string{"scripts/bench_check.sh": string(script), "cmd/bench/main.go": "", "go": "#!/bin/sh\n" + builder + "\n"} {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
	}
	do := func(command string) (string, error) {
		c := exec.CommandContext(t.Context(), "bash", "-ec", command)
		c.Dir = root
		c.Env = append(os.Environ(), "GO="+filepath.Join(root, "go"), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		text, err := c.CombinedOutput()
		return strings.TrimSpace(string(text)), err
	}
	commit := func(message string) string {
		hash, err := do("git add -A; git commit -q --allow-empty -m " + message + "; git rev-parse --short=12 HEAD")
		require.NoError(t, err, hash)
		return hash
	}
	measured := func() string {
		text, err := do("bash scripts/bench_check.sh '' 3 h.jsonl")
		require.NoError(t, err, text)
		return text
	}
	_, err = do("git init -q")
	require.NoError(t, err)
	commit("first")
	text, err := do("bash scripts/bench_check.sh")
	require.Error(t, err)
	require.Contains(t, text, "name a REF")

	_, err = do("mkdir -p docs/maintain; touch docs/maintain/peers.txt")
	require.NoError(t, err)
	peers := commit("peers")
	now := commit("later")
	text = measured()
	require.Contains(t, text, "no tag v*: the reference is "+peers)
	require.Contains(t, text, "-repeats 3 -history h.jsonl -plot h.svg -commit "+now+" -reference "+peers)

	_, err = do("git tag v0.1.0; git tag vendor; echo 1 > docs/maintain/peers.txt")
	require.NoError(t, err)
	after := commit("after")
	_, err = do("git tag data/parquet/v0.2.0; echo 2 > docs/maintain/peers.txt")
	require.NoError(t, err)
	require.Contains(t, measured(), "-commit "+after+" -reference "+now)
	_, err = do("echo package main > cmd/bench/main.go")
	require.NoError(t, err)
	require.Contains(t, measured(), "-commit "+after+"-dirty -reference "+now)
}
