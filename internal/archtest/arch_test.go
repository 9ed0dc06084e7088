// Package archtest holds the rules of the project's structure as tests.
package archtest

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/lazo-ml/lazo/"

// allowed has the packages of lazo that each package may import. DESIGN.md summarizes it. A new package needs a row
// here, and a public one in README.md.
var allowed = map[string][]string{
	"loop":                   {"internal/abilities", "internal/agreed", "internal/ahead", "internal/better", "internal/columns", "internal/epochs", "internal/joined", "internal/lookup", "internal/pieces", "internal/reader", "internal/records", "internal/reused", "internal/shield", "internal/signals", "internal/timetable"},
	"callbacks":              {"internal/better", "internal/records", "internal/regular", "loop", "internal/abilities", "internal/shield"},
	"train":                  {"internal/abilities", "loop"},
	"docs/site":              {},
	"internal/aot":           {"internal/child", "internal/pjrt"},
	"internal/better":        {"internal/edits"},
	"internal/blocks":        {},
	"internal/golden":        {},
	"internal/plugintest":    {"internal/owners", "xla"},
	"internal/idle":          {},
	"internal/ranks":         {"dist/launch", "internal/idle"},
	"internal/brackets":      {},
	"internal/arrays":        {"internal/dtype"},
	"internal/listed":        {},
	"internal/dtype":         {},
	"internal/abilities":     {},
	"internal/agreed":        {},
	"internal/ahead":         {},
	"internal/columns":       {"internal/abilities", "internal/pieces"},
	"internal/epochs":        {"internal/abilities"},
	"internal/reader":        {"internal/ahead"},
	"internal/signals":       {},
	"internal/timetable":     {},
	"internal/edits":         {},
	"internal/pieces":        {},
	"internal/shares":        {},
	"internal/fetch":         {"internal/listed", "internal/regular", "internal/vfs"},
	"internal/child":         {},
	"internal/gate":          {},
	"internal/awaited":       {},
	"internal/packs":         {},
	"internal/graphs":        {},
	"internal/joined":        {},
	"internal/layering":      {},
	"internal/owners":        {"internal/regular"},
	"internal/planned":       {"internal/regular"},
	"internal/png":           {},
	"internal/records":       {},
	"internal/reused":        {},
	"internal/board":         {"loop"},
	"callbacks/board":        {"callbacks", "checkpoint", "internal/abilities", "internal/board", "loop"},
	"internal/runs":          {"checkpoint", "checkpoint/safetensors", "data/files", "internal/better", "internal/records", "internal/regular", "loop"},
	"internal/regular":       {},
	"internal/autodiff":      {},
	"xla/ops":                {"internal/autodiff", "internal/graphs", "xla"},
	"internal/archtest":      {},
	"internal/answers":       {"data"},
	"internal/lookup":        {"internal/edits", "internal/records"},
	"internal/memstore":      {"checkpoint"},
	"internal/mutants":       {"internal/child"},
	"internal/document":      {"internal/listed"},
	"internal/vfs":           {"internal/regular"},
	"internal/shield":        {"internal/graphs"},
	"internal/size":          {},
	"internal/tfrecord":      {},
	"checkpoint":             {"internal/better", "callbacks", "checkpoint/safetensors", "internal/dtype", "internal/shield", "internal/vfs", "loop", "internal/abilities", "internal/shares"},
	"checkpoint/safetensors": {"internal/listed", "internal/regular"},
	"checkpoint/storetest":   {"checkpoint", "checkpoint/safetensors"},
	"data":                   {"internal/ahead", "internal/arrays", "internal/blocks", "internal/listed", "internal/shield"},
	"data/internal/packed":   {"data", "internal/regular"},
	"data/internal/datatest": {},
	"data/tables":            {"data", "data/internal/packed", "data/text", "internal/arrays", "internal/edits", "internal/listed"},
	"data/series":            {"data", "internal/arrays", "internal/listed"},
	"data/images":            {"data", "internal/arrays", "internal/listed", "internal/png"},
	"data/files":             {"data", "data/internal/packed", "internal/arrays", "internal/fetch", "internal/listed", "internal/tfrecord"},
	"data/gomlxdata":         {"data"},
	"internal/names":         {"internal/edits", "internal/listed"},
	"internal/outputs":       {},
	"nn/losses":              {"internal/autodiff", "internal/layering", "internal/names", "internal/outputs", "xla/ops"},
	"metrics":                {"internal/autodiff"},
	"callbacks/tensorboard":  {"callbacks", "internal/records", "internal/tfrecord", "loop"},
	"internal/install":       {"internal/fetch", "internal/listed", "internal/owners", "internal/vfs"},
	"internal/pjrt":          {"internal/gate", "internal/owners", "internal/shield"},
	"internal/mpi":           {"internal/owners", "internal/pjrt"},
	"internal/hlo":           {"internal/autodiff", "internal/graphs"},
	"internal/probe":         {"internal/child", "internal/pjrt"},
	"xla/export":             {"checkpoint/safetensors", "internal/dtype", "internal/gate", "internal/vfs", "xla", "internal/pjrt"},
	"xla/cost":               {"internal/brackets"},
	"xla/plan":               {"internal/aot", "internal/brackets", "internal/graphs", "internal/listed", "xla", "xla/cost", "xla/export"},
	"xla/register":           {"xla"},
	"internal/spmd":          {},
	"xla":                    {"internal/aot", "internal/edits", "internal/gate", "internal/graphs", "internal/joined", "internal/owners", "internal/planned", "internal/regular", "internal/shield", "xla/cost", "internal/hlo", "internal/install", "internal/pjrt", "internal/probe", "internal/spmd"},
	"dist":                   {"internal/joined", "internal/install", "internal/mpi", "internal/spmd"},
	"dist/storetest":         {"dist"},
	"dist/launch":            {"dist", "internal/child", "internal/regular", "loop", "internal/install", "internal/owners", "internal/vfs"},
	"strategies":             {"data", "internal/blocks", "internal/dtype", "internal/graphs", "internal/joined", "internal/packs", "xla"},
	"managed/strategytest":   {"checkpoint", "data", "xla/ops", "internal/plugintest", "loop", "managed", "optim", "strategies", "xla", "internal/pjrt"},
	"optim":                  {"internal/autodiff", "internal/awaited", "internal/listed", "internal/packs"},
	"nn":                     {"xla/ops", "internal/autodiff", "internal/layering", "internal/names", "internal/outputs"},
	"data/text":              {"internal/document", "internal/listed", "internal/regular"},
	"data/text/chat":         {"data/text"},
	"metrics/plots":          {"internal/better", "internal/regular", "loop"},
	"flaxlike/selection":     {"callbacks", "checkpoint", "checkpoint/safetensors", "data", "flaxlike", "internal/abilities", "internal/better", "internal/graphs", "internal/names", "internal/shield", "internal/vfs", "loop"},
	"flaxlike/decision":      {"internal/graphs"},
	"flaxlike/report":        {"checkpoint", "data", "data/tables", "flaxlike", "loop", "managed", "metrics/plots"},
	"managed":                {"checkpoint", "data", "xla/ops", "internal/autodiff", "internal/awaited", "internal/blocks", "internal/dtype", "internal/gate", "internal/graphs", "internal/layering", "internal/listed", "internal/packs", "internal/regular", "internal/shield", "loop", "managed/internal/store", "metrics", "optim", "checkpoint/safetensors", "strategies", "xla", "xla/export", "internal/abilities", "internal/shares"},
	"flaxlike":               {"callbacks", "checkpoint", "data", "data/tables", "flaxlike/decision", "internal/arrays", "internal/dtype", "internal/gate", "internal/graphs", "internal/layering", "internal/listed", "internal/names", "internal/outputs", "internal/regular", "internal/shield", "loop", "nn/losses", "managed", "metrics", "nn", "optim", "checkpoint/safetensors", "strategies", "train", "xla", "internal/abilities"},
	"pretrained":             {"checkpoint", "checkpoint/safetensors", "data", "data/text", "flaxlike", "internal/dtype", "internal/fetch", "internal/graphs", "internal/listed", "internal/regular", "managed", "nn", "nn/losses", "optim", "internal/document", "internal/layering"},
	"serve":                  {"data", "data/tables", "internal/abilities", "internal/answers", "internal/arrays", "internal/gate", "internal/graphs", "internal/listed", "internal/shield", "internal/document"},
	"pretrained/openai":      {"data", "data/text", "data/text/chat", "internal/document", "internal/listed", "internal/shield", "pretrained", "serve"},
	"examples/fit":           {"data", "flaxlike", "loop", "nn"},
	"examples/images":        {"data", "data/images", "flaxlike", "loop", "nn"},
	"examples/outputs":       {"data", "flaxlike", "loop", "nn"},
	"examples/text":          {"data", "data/tables", "flaxlike", "loop", "nn"},
	"examples/finetune":      {"data", "data/text", "flaxlike", "loop", "optim", "pretrained"},
	"examples/serve":         {"data", "flaxlike", "loop", "nn", "serve"},
	"cmd/lazo":               {"checkpoint", "data", "data/images", "data/tables", "data/text", "data/text/chat", "dist/launch", "flaxlike", "checkpoint/safetensors", "internal/answers", "internal/child", "internal/board", "internal/planned", "internal/regular", "internal/signals", "internal/runs", "loop", "managed", "pretrained", "pretrained/openai", "serve", "strategies", "xla", "xla/export", "internal/install", "internal/mpi", "internal/pjrt", "xla/plan", "internal/probe"},
	"examples/mnist":         {"callbacks", "callbacks/tensorboard", "checkpoint", "data", "data/files", "data/images", "dist", "loop", "nn/losses", "managed", "nn", "optim", "strategies", "xla"},
	"examples/quickstart":    {"callbacks", "data", "loop", "nn/losses", "managed", "nn", "optim", "strategies", "xla"},
	"docs":                   {},
	"examples":               {},
	"examples/eager":         {"data", "loop", "nn/losses", "managed", "nn", "optim", "strategies", "xla"},
	"examples/cartpole":      {"callbacks", "checkpoint", "data", "xla/ops", "loop", "nn/losses", "managed", "nn", "optim", "strategies", "xla"},
	"examples/gan":           {"data", "loop", "managed", "nn", "optim", "strategies", "xla"},
	"examples/lrfinder":      {"data", "loop", "nn/losses", "managed", "nn", "optim", "strategies", "xla"},
	"examples/export":        {"data", "xla/ops", "loop", "nn/losses", "managed", "nn", "optim", "strategies", "xla"},
	"examples/manual":        {"callbacks", "data", "loop", "nn/losses", "managed", "nn", "optim", "strategies", "xla"},
	"examples/loop":          {"callbacks", "data", "loop", "nn/losses", "managed", "nn", "optim", "strategies", "xla"},
	"examples/linear":        {"callbacks", "data", "loop", "nn/losses", "managed", "nn", "optim", "strategies", "train", "xla"},
	"examples/cnn":           {"callbacks", "checkpoint", "data", "loop", "nn/losses", "managed", "metrics", "nn", "optim", "strategies", "xla"},
	"examples/resnet":        {"callbacks", "data", "data/images", "loop", "nn/losses", "managed", "nn", "optim", "strategies", "train", "xla"},
	"examples/own":           {"callbacks", "checkpoint", "data", "loop"},
	"examples/train":         {"callbacks", "data", "loop", "nn/losses", "managed", "nn", "optim", "strategies", "train", "xla"},
	"examples/transformer":   {"callbacks", "data", "loop", "nn/losses", "managed", "metrics", "nn", "optim", "strategies", "train", "xla"},
	"examples/translate":     {"callbacks", "data", "xla/ops", "loop", "nn/losses", "managed", "nn", "optim", "strategies", "xla"},
	"examples/tagger":        {"callbacks", "data", "loop", "nn/losses", "managed", "metrics", "nn", "optim", "strategies", "xla"},
	"examples/gpt":           {"callbacks", "data", "loop", "nn/losses", "managed", "nn", "optim", "strategies", "data/text", "train", "xla"},
	"examples/lora":          {"data", "data/text", "flaxlike", "loop", "managed", "optim", "pretrained", "strategies", "xla"},
	"examples/charlm":        {"data", "flaxlike", "loop", "nn"},
	"examples/tabular":       {"data", "data/tables", "flaxlike", "loop", "nn"},
	"examples/twotower":      {"callbacks", "data", "loop", "managed", "nn", "nn/losses", "optim", "strategies", "xla"},
	"examples/vae":           {"callbacks", "data", "loop", "managed", "nn", "optim", "strategies", "xla"},
	"examples/transfer":      {"data", "flaxlike", "loop", "nn", "optim"},
	"cmd/bench":              {"callbacks", "checkpoint", "data", "data/images", "data/tables", "data/text", "dist", "flaxlike", "loop", "nn/losses", "managed", "metrics", "nn", "optim", "pretrained", "checkpoint/safetensors", "serve", "strategies", "train", "xla", "internal/mpi"},
	"cmd/bench/scale":        {"xla/plan"},

	"managed/internal/store": {"checkpoint", "internal/abilities", "data", "internal/dtype", "internal/gate", "internal/graphs", "internal/packs", "strategies", "xla"},
}

type pkg struct {
	ImportPath   string
	Name         string
	Imports      []string
	TestImports  []string
	XTestImports []string
	CgoFiles     []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Name,Imports,TestImports,XTestImports,CgoFiles", module+"...").Output()
	require.NoError(t, err)
	var list []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p pkg
		require.NoError(t, d.Decode(&p))
		list = append(list, p)
	}
	require.NotEmpty(t, list)
	return list
}

func TestArrows(t *testing.T) {
	require.Equal(t, []string{"loop"}, unused([]string{"data", "loop"}, []string{"fmt", module + "data"}))
	checked := 0
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		may, known := allowed[name]
		if !known {
			t.Errorf("package %s has no row in the table of arrows", name)
			continue
		}
		for _, i := range p.Imports {
			if own, ok := strings.CutPrefix(i, module); ok && !slices.Contains(may, own) {
				t.Errorf("%s imports %s; it may import %v", name, own, may)
			}
			checked++
		}
		if none := unused(may, p.Imports); none != nil {
			t.Errorf("%s may import %v, and does not: take that out of the table", name, none)
		}
	}
	t.Logf("%d imports checked", checked)
}

// unused returns the packages that one may import and does not.
func unused(may, imports []string) (none []string) {
	for _, own := range may {
		if !slices.Contains(imports, module+own) {
			none = append(none, own)
		}
	}
	return none
}

// callbacks and train add nothing to loop's needs.
func TestLoopNeedsTheStandardLibraryAlone(t *testing.T) {
	ours := []string{"loop", "callbacks", "train", "internal/abilities", "internal/agreed", "internal/ahead", "internal/better", "internal/columns", "internal/edits", "internal/epochs", "internal/graphs", "internal/joined", "internal/lookup", "internal/pieces", "internal/reader", "internal/records", "internal/regular", "internal/reused", "internal/shield", "internal/signals", "internal/timetable"}
	checked := 0
	for _, p := range packages(t) {
		if !slices.Contains(ours, strings.TrimPrefix(p.ImportPath, module)) {
			continue
		}
		checked++
		for _, i := range p.Imports {
			if !slices.Contains(ours, strings.TrimPrefix(i, module)) {
				require.NotContains(t, i, ".", "%s imports %s", p.ImportPath, i)
			}
		}
	}
	require.Equal(t, len(ours), checked)
}

// xla and strategies reach the processes of a job through xla.Job alone.
func TestTheRuntimeKnowsNoProcesses(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", module+"xla/...", module+"strategies").Output()
	require.NoError(t, err)
	for _, name := range []string{"dist", "internal/mpi"} {
		require.NotContains(t, strings.Fields(string(out)), module+name)
	}
}

// GoMLX's XLA backend hides the program, and go-xla's binding ends the process instead of returning an error. Both are
// replaced and must not be imported.
func TestTheBindingAndTheBackendAreOurs(t *testing.T) {
	for _, p := range packages(t) {
		for _, i := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			require.NotContains(t, []string{"github.com/gomlx/go-xla/compute/xla", "github.com/gomlx/go-xla/pjrt", "github.com/gomlx/gomlx/backends/default"}, i, p.ImportPath)
		}
	}
}

// Package must ends the program: it is for programs, tests and documents. A library returns the error.
func TestMustIsForPrograms(t *testing.T) {
	programs := 0
	for _, p := range packages(t) {
		if slices.Contains(p.Imports, "github.com/janpfeifer/must") {
			require.Equal(t, "main", p.Name, "%s imports must: return the error", p.ImportPath)
			programs++
		}
	}
	require.Positive(t, programs)
	t.Logf("%d programs", programs)
}

// cgo has the packages that call C libraries, which are loaded at run time, and the reason for the second one.
var cgo = map[string]string{
	module + "internal/pjrt": "the plugins",
	module + "internal/mpi":  "libmpi, and handlers that XLA calls on its own threads, where no Go is to run",
}

func TestCgoIsInTwoPackages(t *testing.T) {
	found := 0
	for _, p := range packages(t) {
		if len(p.CgoFiles) > 0 {
			require.Contains(t, cgo, p.ImportPath)
			found++
		}
	}
	require.Equal(t, len(cgo), found)
}
