package loop_test

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/golden"
)

const (
	tracesFile   = "testdata/traces.golden"
	tracesBucket = 100 // programs
)

// tracesKinds are the kinds of programs, and their buckets.
var tracesKinds = []struct {
	name          string
	buckets, seed int
}{
	{"plain", 30, 0},            // alone, one step after the other
	{"observed", 10, 1_000_000}, // as plain, with callbacks that observe the run and ask for calls
	{"blocks", 30, 2_000_000},   // alone, with tasks that take several batches at once
	{"ranks", 30, 3_000_000},    // of two to four processes together, half of them with blocks
}

const tracesHead = `# What random programs saw of the loop: TestTraces. Each line is a bucket of 100 programs: its kind and number, a hash of
# the programs, and one of their traces. Where the first differs, other programs were drawn; where only the second does,
# the loop does something else. What it is: the same command before and after the change, and the difference of the two.
#	go test -tags nightly ./loop -run 'TestTraces/blocks/17$' -v       the hashes of the programs of a bucket, and how they ended
#	go test -tags nightly ./loop -run 'TestTraces/blocks/17/1742$' -v  the text and the trace of one program
`

// 10,000 random programs see the same of the loop as when the golden file was written. Without the tag nightly, every
// fifth bucket runs.
// -write-golden writes only the buckets that ran.
func TestTraces(t *testing.T) {
	lines, order := map[string]string{}, []string(nil)
	for _, kind := range tracesKinds {
		for number := range kind.buckets {
			order = append(order, bucketName(kind.name, number))
		}
	}
	was := readTraces(t)
	maps.Copy(lines, was)
	for _, kind := range tracesKinds {
		t.Run(kind.name, func(t *testing.T) {
			for number := range kind.buckets {
				if number%bucketsApart != 0 {
					continue
				}
				t.Run(strconv.Itoa(number), func(t *testing.T) {
					lines[bucketName(kind.name, number)] = traceBucket(t, kind.name, number, kind.seed)
				})
			}
		})
	}
	var text strings.Builder
	text.WriteString(tracesHead)
	for _, name := range order {
		line, ok := lines[name]
		if !ok {
			continue
		}
		text.WriteString(line + "\n")
		if line != was[name] { // in short; details follow
			t.Logf("bucket %q, was %q", line, was[name])
		}
	}
	golden.Equal(t, tracesFile, text.String()) // lines that did not run are unchanged
}

func bucketName(kind string, number int) string { return fmt.Sprintf("%s %02d", kind, number) }

// readTraces are the lines of the golden file, by their buckets.
func readTraces(t *testing.T) map[string]string {
	text, err := os.ReadFile(tracesFile)
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	lines := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 4 && fields[0] != "#" {
			lines[fields[0]+" "+fields[1]] = strings.TrimSuffix(line, "\n")
		}
	}
	return lines
}

// traceBucket is the line of a bucket. If -run has its name, it has more detail.
func traceBucket(t *testing.T, kind string, bucket, seed int) string {
	depth := strings.Count(flag.Lookup("test.run").Value.String(), "/")
	programs, traces, blocks := sha256.New(), sha256.New(), 0
	for number := bucket * tracesBucket; number < (bucket+1)*tracesBucket; number++ {
		p := drawnTraced(kind, seed+number)
		trace, n := p.trace(t)
		blocks += n
		if plain := p; !p.single { // the trace has nothing of the length of blocks
			plain.program = p.withoutBlocks()
			if without, _ := plain.trace(t); without != trace {
				t.Errorf("program %d: the trace differs without blocks", number)
				if depth >= 3 {
					t.Log("without blocks:\n" + without)
				}
			}
		}
		text := p.text()
		trace = p.plan() + trace
		fmt.Fprintln(programs, hashed(text))
		fmt.Fprintln(traces, hashed(trace))
		switch {
		case depth == 2:
			t.Logf("program %d: %s %s %s", number, hashed(text), hashed(trace), endings(trace))
		case depth > 2:
			t.Run(strconv.Itoa(number), func(t *testing.T) { t.Logf("\n%s\n%s", text, trace) })
		}
	}
	if kind == "blocks" || kind == "ranks" {
		require.Positive(t, blocks)
	}
	if depth > 0 {
		t.Logf("%d blocks of more than one step", blocks)
	}
	return fmt.Sprintf("%s %.8x %.8x", bucketName(kind, bucket), programs.Sum(nil), traces.Sum(nil))
}

func hashed(text string) string { return fmt.Sprintf("%.8x", sha256.Sum256([]byte(text))) }

// endings are the results in a trace.
func endings(trace string) string {
	var all []string
	for line := range strings.Lines(trace) {
		if result, ok := strings.CutPrefix(line, "result: "); ok {
			all = append(all, strings.TrimSpace(result))
		}
	}
	return strings.Join(all, "; ")
}
