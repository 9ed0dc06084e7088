package loop_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/records"
	"github.com/lazo-ml/lazo/loop"
)

type fileForm struct {
	name  string
	write func(*loop.History, io.Writer) error
	read  func(*loop.History, io.Reader) error
}

var fileForms = []fileForm{
	{"json", (*loop.History).WriteJSON, (*loop.History).ReadJSON},
	{"csv", (*loop.History).WriteCSV, (*loop.History).ReadCSV},
}

// text is a history as text in which every bit shows, so that two can be compared.
func text(t require.TestingT, h *loop.History) string {
	var s strings.Builder
	batches, err := h.Collect("elapsed.batch")
	require.NoError(t, err)
	i := 0
	for e, logs := range h.Rows() {
		fmt.Fprintf(&s, "%d %d %d %d %d:", e.Steps, e.Samples, e.Time, int64(batches[0][i]), int64(e.Date))
		for entry := range logs.All() {
			v, err := entry.Value.Float()
			require.NoError(t, err)
			fmt.Fprintf(&s, " %q.%q=%x", entry.Collection, entry.Name, math.Float64bits(v))
		}
		s.WriteByte('\n')
		i++
	}
	return s.String()
}

func someNumber() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64(), rapid.Custom(func(t *rapid.T) float64 { return math.Float64frombits(rapid.Uint64().Draw(t, "bits")) }),
		rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0, math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, 1e21, 1e-7}))
}

func TestF40_filesAreExact(t *testing.T) {
	for _, form := range fileForms {
		t.Run(form.name, func(t *testing.T) {
			numbers := 0
			rapid.Check(t, func(t *rapid.T) {
				var h loop.History
				steps := int64(0)
				for range rapid.IntRange(0, 6).Draw(t, "rows") {
					var logs loop.Logs
					for range rapid.IntRange(0, 4).Draw(t, "entries") {
						v := someNumber().Draw(t, "value")
						if math.IsNaN(v) {
							v = math.NaN() // all NaN are one
						}
						c := rapid.SampledFrom([]loop.Collection{loop.Losses, loop.Metrics, "größe, \"x\"", " "}).Draw(t, "collection")
						logs.Set(c, rapid.SampledFrom([]string{"a", "b.c", `"`, ",", "<script>", "é 世界", " x ", `\.`, "#", "\ufeff"}).Draw(t, "name"), v)
						numbers++
					}
					steps = rapid.Int64Range(steps, 1<<62).Draw(t, "steps")
					h.Commit(loop.Elapsed{
						Steps: steps, Samples: rapid.Int64Range(0, 1<<62).Draw(t, "samples"),
						Time: time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "time")),
						Date: loop.Date(rapid.Int64().Draw(t, "date")),
					}, logs, rapid.Int64Range(0, math.MaxInt32).Draw(t, "batch"))
				}
				var file, again bytes.Buffer
				require.NoError(t, form.write(&h, &file))
				var back loop.History
				require.NoError(t, form.read(&back, bytes.NewReader(file.Bytes())), file.String())
				require.Equal(t, text(t, &h), text(t, &back), file.String())
				require.NoError(t, form.write(&back, &again))
				require.Equal(t, file.String(), again.String(), "and written again it is the same")
			})
			t.Logf("F40: %d numbers there and back, 0 changed", numbers)
		})
	}
}

func TestHistory_fileForms(t *testing.T) {
	var h loop.History
	logs := metric("accuracy", 0.5)
	logs.Output("prediction", []int{1, 2})
	h.Commit(loop.Elapsed{Steps: 1, Samples: 32, Time: 1500 * time.Millisecond, Date: loop.Date(time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC).UnixNano())}, logs, 32)
	logs = metric("accuracy", math.Inf(-1))
	logs.Loss("loss", math.NaN())
	h.Commit(loop.Elapsed{Steps: 2, Samples: 64, Time: 2 * time.Second}, logs, 32)
	for i, want := range []string{
		`[
{"elapsed.steps":1,"elapsed.samples":32,"elapsed.batch":32,"elapsed.time":1.5,"elapsed.date":"2024-02-29T12:00:00Z","metrics.accuracy":0.5},
{"elapsed.steps":2,"elapsed.samples":64,"elapsed.batch":32,"elapsed.time":2,"metrics.accuracy":"-Infinity","losses.loss":"NaN"}
]
`, `elapsed.steps,elapsed.samples,elapsed.batch,elapsed.time,elapsed.date,metrics.accuracy,losses.loss
1,32,32,1.5,2024-02-29T12:00:00Z,0.5,
2,64,32,2,,-Infinity,NaN
`} {
		var file bytes.Buffer
		require.NoError(t, fileForms[i].write(&h, &file))
		require.Equal(t, want, file.String())
	}
}

func TestHistory_writeErrors(t *testing.T) {
	lost := errors.New("device lost")
	for _, form := range fileForms {
		for _, row := range []struct {
			name       string
			collection loop.Collection
			entry      string
			value      any
			is         error
			err        string
		}{
			{name: "no name", collection: "x", value: 1.0, is: records.ErrName, err: `loop: write history: malformed name: column "x.", want collection.name`},
			{name: "no collection", entry: "x", value: 1.0, is: records.ErrName, err: `loop: write history: malformed name: column ".x", want collection.name`},
			{name: "a dot in the collection", collection: "x.y", entry: "z", value: 1.0, is: records.ErrName, err: `loop: write history: malformed name: the collection "x.y" has a dot`},
			{name: "a line end", collection: "x", entry: "y\nz", value: 1.0, is: records.ErrName, err: `loop: write history: malformed name: column "x.y\nz" has control characters or is not UTF-8`},
			{name: "no UTF-8", collection: "x", entry: "\xff", value: 1.0, is: records.ErrName, err: `loop: write history: malformed name: column "x.\xff" has control characters or is not UTF-8`},
			{name: "a value", collection: "x", entry: "y", value: late{new(int), 0, lost}, is: lost, err: `loop: write history: step 1: x.y: device lost`},
		} {
			t.Run(form.name+" "+row.name, func(t *testing.T) {
				var h loop.History
				var logs loop.Logs
				logs.Set(row.collection, row.entry, row.value)
				h.Commit(at(1), logs, 1)
				err := form.write(&h, io.Discard)
				require.ErrorIs(t, err, row.is)
				require.EqualError(t, err, row.err)
			})
		}
		var h loop.History
		h.Commit(at(1), metric("m", 1), 1)
		w := &brokenPipe{}
		require.EqualError(t, form.write(&h, w), "loop: write history: broken pipe")
		require.Equal(t, 1, w.writes)
	}
}

func TestF29_hostileHistories(t *testing.T) {
	deep := strings.Repeat("[", 1<<20)
	cases := 0
	for _, row := range []struct{ name, form, file, err string }{
		{"empty", "csv", "", "row 1: no line of column names"},
		{"no steps", "csv", "metrics.a\n1\n", "row 1: line 1: no column elapsed.steps"},
		{"columns twice", "csv", "elapsed.steps,metrics.a,metrics.a\n", `row 1: line 1: column "metrics.a" comes twice`},
		{"a column without a collection", "csv", "elapsed.steps,a\n", `row 1: line 1: malformed name: column "a", want collection.name`},
		{"an unknown part of the time", "csv", "elapsed.steps,elapsed.x\n", `row 1: line 1: malformed name: column "elapsed.x", there is no such part of the elapsed time`},
		{"control characters", "csv", "elapsed.steps,\"a.\x1b[2J\"\n", `row 1: line 1: malformed name: column "a.\x1b[2J" has control characters or is not UTF-8`},
		{"too few cells", "csv", "elapsed.steps,a.b\n1,2\n3\n", "row 2: record on line 3: wrong number of fields"},
		{"too many cells", "csv", "elapsed.steps,a.b\n1,2,3\n", "row 1: record on line 2: wrong number of fields"},
		{"a huge number", "csv", "elapsed.steps,a.b\n1,1e999\n", `row 1: line 2, byte 3: a.b: want a number of 64 bits, got "1e999"`},
		{"a text", "csv", "elapsed.steps,a.b\n1,x\n", `row 1: line 2, byte 3: a.b: want a number of 64 bits, got "x"`},
		{"steps too large", "csv", "elapsed.steps\n9223372036854775808\n", `row 1: line 2, byte 1: elapsed.steps: want an integer of 64 bits, got "9223372036854775808"`},
		{"steps below 0", "csv", "elapsed.steps\n-3\n", "row 1: line 2: step -3: elapsed.steps is -3, expected 0 to 2^62"},
		{"a run twice", "csv", "elapsed.steps\n3\n4\n3\n", "row 3: line 4: elapsed.steps is 3, expected 4 or more, as rows rise: is a run twice in the file?"},
		{"a run twice", "json", "{\"elapsed.steps\":3}\n{\"elapsed.steps\":2}\n", "row 2, before byte 39: elapsed.steps is 2, expected 3 or more, as rows rise: is a run twice in the file?"},
		{"steps that wrap with the next", "csv", "elapsed.steps\n4611686018427387905\n", "row 1: line 2: step 4611686018427387905: elapsed.steps is 4611686018427387905, expected 0 to 2^62"},
		{"samples that wrap", "csv", "elapsed.steps,elapsed.samples\n1,9223372036854775807\n", "row 1: line 2: step 1: elapsed.samples is 9223372036854775807, expected 0 to 2^62"},
		{"samples that wrap", "json", `{"elapsed.steps":1,"elapsed.samples":9223372036854775807}`, "row 1, before byte 57: step 1: elapsed.samples is 9223372036854775807, expected 0 to 2^62"},
		{"a time that wraps", "json", `{"elapsed.steps":1,"elapsed.time":9223372036.854775807}`, "row 1, before byte 55: step 1: elapsed.time is 9223372036854775807, expected 0 to 2^62 nanoseconds"},
		{"samples below 0", "csv", "elapsed.steps,elapsed.samples\n1,-1\n", "row 1: line 2: step 1: elapsed.samples is -1, expected 0 to 2^62"},
		{"a time below 0", "csv", "elapsed.steps,elapsed.time\n1,-1\n", "row 1: line 2: step 1: elapsed.time is -1000000000, expected 0 to 2^62 nanoseconds"},
		{"a batch below 0", "csv", "elapsed.steps,elapsed.batch\n1,-2\n", "row 1: line 2: step 1: elapsed.batch is -2, expected 0 to 2^62"},
		{"fewer samples than before", "csv", "elapsed.steps,elapsed.samples\n1,64\n2,32\n", "row 2: line 3: elapsed.samples is 32, expected 64 or more, as rows rise, or elapsed.batch"},
		{"an object behind a mark", "json", "\ufeff{", "row 1, before byte 4: no elapsed.steps"},
		{"two marks", "json", "\ufeff\ufeff{}", "row 1, before byte 3: invalid character 'ï' looking for beginning of value"},
		{"steps empty", "csv", "elapsed.steps,a.b\n,1\n", `row 1: line 2, byte 1: elapsed.steps: want an integer of 64 bits, got ""`},
		{"a time with units", "csv", "elapsed.steps,elapsed.time\n1,1h3\n", `row 1: line 2, byte 3: elapsed.time: want seconds as 12.345, got "1h3"`},
		{"a time too long", "csv", "elapsed.steps,elapsed.time\n1,1e300\n", `row 1: line 2, byte 3: elapsed.time: want seconds as 12.345, got "1e300"`},
		{"no date", "csv", "elapsed.steps,elapsed.date\n1,today\n", `row 1: line 2, byte 3: elapsed.date: want a date as 2006-01-02T15:04:05Z07:00, of the years 1678 to 2261, got "today"`},
		{"a date far away", "csv", "elapsed.steps,elapsed.date\n1,9999-12-31T00:00:00Z\n", `row 1: line 2, byte 3: elapsed.date: want a date as 2006-01-02T15:04:05Z07:00, of the years 1678 to 2261, got "9999-12-31T00:00:00Z"`},
		{"an open quote", "csv", "elapsed.steps,a.b\n1,\"2\n", `row 1: parse error on line 2, column 6: extraneous or missing " in quoted-field`},
		{"a cut last line", "csv", "elapsed.steps,a.b\n1,2\n3,", ""}, // cannot be seen: the cell may be empty
		{"a long text is not repeated", "csv", "elapsed.steps,a.b\n1," + strings.Repeat("x", 1<<20) + "\n", `row 1: line 2, byte 3: a.b: want a number of 64 bits, got "` + strings.Repeat("x", 40) + `"`},

		{"empty", "json", "", ""},
		{"no object", "json", "1", "row 1, before byte 1: want an object for a row, got 1"},
		{"an open array", "json", "[", "row 1, before byte 1: unexpected EOF"},
		{"a cut row", "json", `{"elapsed.steps":1}` + "\n" + `{"elapsed.st`, "row 2, before byte 21: unexpected EOF"},
		{"two arrays", "json", "[][]", "row 1, before byte 3: want nothing after the array, got ["},
		{"no steps", "json", `[{"a.b":1}]`, "row 1, before byte 9: no elapsed.steps"},
		{"steps null", "json", `[{"elapsed.steps":null}]`, `row 1, before byte 22: "elapsed.steps": want a number, got <nil>`},
		{"keys twice", "json", `[{"elapsed.steps":1,"a.b":1,"a.b":1}]`, `row 1, before byte 35: "a.b" comes twice`},
		{"the same key in other letters", "json", `[{"elapsed.steps":1,"a.b":1,"\u0061.b":1}]`, `row 1, before byte 40: "a.b" comes twice`},
		{"deep", "json", `[{"elapsed.steps":1,"a.b":` + deep, `row 1, before byte 27: "a.b": want a number, got [`},
		{"deep from the start", "json", deep, "row 1, before byte 2: want an object for a row, got ["},
		{"a huge number", "json", `[{"elapsed.steps":1,"a.b":1e999}]`, `row 1, before byte 31: "a.b": want a number of 64 bits, got "1e999"`},
		{"steps not whole", "json", `[{"elapsed.steps":1.5}]`, `row 1, before byte 21: "elapsed.steps": want an integer of 64 bits, got "1.5"`},
		{"a number as text", "json", `[{"elapsed.steps":1,"a.b":"2"}]`, `row 1, before byte 29: "a.b": want a number, "NaN", "Infinity" or "-Infinity", got "2"`},
		{"true", "json", `[{"elapsed.steps":1,"a.b":true}]`, `row 1, before byte 30: "a.b": want a number, got true`},
		{"control characters", "json", `[{"elapsed.steps":1,"a.\u0000":1}]`, `row 1, before byte 33: malformed name: column "a.\x00" has control characters or is not UTF-8`},
		{"null is missing", "json", `[{"elapsed.steps":1,"a.b":null}]`, ""},
	} {
		t.Run(row.form+" "+row.name, func(t *testing.T) {
			form := fileForms[0]
			if row.form == "csv" {
				form = fileForms[1]
			}
			var h loop.History
			err := form.read(&h, strings.NewReader(row.file))
			if row.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, "loop: read history: "+row.err)
			}
			cases++
		})
	}
	t.Logf("F29: %d hostile files, 0 panics, every error says where", cases)
}

// No writer writes rows that a reader refuses.
func TestHistory_writesWhatItReads(t *testing.T) {
	for _, form := range fileForms {
		for _, e := range []loop.Elapsed{{Steps: 1, Samples: 1<<62 + 1}, {Steps: 1, Time: 1<<62 + 1}, {Steps: 1<<62 + 1}, {Steps: 1, Samples: -1}, {Steps: 1, Time: -1}} {
			var h loop.History
			h.Commit(e, metric("a", 1), 1)
			require.ErrorContains(t, form.write(&h, io.Discard), ", expected 0 to 2^62")
		}
	}
}

// Editors and spreadsheets put a mark in front.
func TestHistory_readsBehindAByteOrderMark(t *testing.T) {
	for _, form := range fileForms {
		var h, back loop.History
		h.Commit(at(1), metric("a", 1), 1)
		h.Commit(at(2), metric("a", 2), 1)
		var file bytes.Buffer
		require.NoError(t, form.write(&h, &file))
		require.NoError(t, form.read(&back, io.MultiReader(strings.NewReader("\ufeff"), &file)))
		require.Equal(t, text(t, &h), text(t, &back))
	}
}

func TestHistory_readKeepsTheRowsBeforeAnError(t *testing.T) {
	for i, file := range []string{
		`{"elapsed.steps":1,"a.b":1}` + "\n" + `{"elapsed.steps":2,"a.b":2}` + "\n" + `{"elap`,
		"elapsed.steps,a.b\n1,1\n2,2\n3,x\n",
	} {
		var h loop.History
		require.Error(t, fileForms[i].read(&h, strings.NewReader(file)))
		_, values, err := h.Series("b")
		require.NoError(t, err)
		require.Equal(t, []float64{1, 2}, values)
		broken := errors.New("broken disk")
		require.ErrorIs(t, fileForms[i].read(&h, iotest.ErrReader(broken)), broken)
	}
}

// A file without elapsed.batch, as a writer makes it, gives each row the examples since the one before.
func TestHistory_readWeighsByTheExamplesBetweenRows(t *testing.T) {
	var h loop.History
	require.NoError(t, h.ReadCSV(strings.NewReader("elapsed.steps,elapsed.samples,m.a\n1,10,1\n2,20,1\n3,50,5\n")))
	mean, err := h.Mean("a")
	require.NoError(t, err)
	require.Equal(t, (10*1.0+10*1+30*5)/50, mean)
}

func fuzzHistory(f *testing.F, form fileForm) {
	f.Fuzz(func(t *testing.T, data []byte) {
		var h, back loop.History
		err := form.read(&h, bytes.NewReader(data))
		if err != nil && !strings.HasPrefix(err.Error(), "loop: read history: ") {
			t.Fatal(err)
		}
		var file bytes.Buffer
		require.NoError(t, form.write(&h, &file), "what was read can be written")
		require.NoError(t, form.read(&back, bytes.NewReader(file.Bytes())))
		require.Equal(t, h.Len(), back.Len())
		require.Equal(t, text(t, &h), text(t, &back))
	})
}

func FuzzReadHistoryJSON(f *testing.F) {
	f.Add([]byte(`[{"elapsed.steps":1,"elapsed.time":1.5,"elapsed.date":"2024-02-29T12:00:00Z","a.b":"NaN","a.c":-0}]`))
	f.Add([]byte("{\"elapsed.steps\":1}\n{\"elapsed.steps\":2,\"a.b\":null}"))
	fuzzHistory(f, fileForms[0])
}

func FuzzReadHistoryCSV(f *testing.F) {
	f.Add([]byte("elapsed.steps,elapsed.time,elapsed.date,a.b\n1,1.5,2024-02-29T12:00:00Z,NaN\n2,-0.000000001,,\n"))
	f.Add([]byte("a.b,elapsed.steps\n\"-0\",3\r\n"))
	fuzzHistory(f, fileForms[1])
}

type brokenPipe struct{ writes int }

func (w *brokenPipe) Write([]byte) (int, error) {
	w.writes++
	return 0, errors.New("broken pipe")
}
