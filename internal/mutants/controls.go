package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// control is a change of the product that a test must find.
type control struct {
	name, file string
	edits      []edit
	pkg, test  string
	tags       string
}

// edit replaces a text that stands once in the file.
type edit struct{ old, new string }

// texts are the files of the module that the control changes.
func (c control) texts(module string) (map[string][]byte, error) {
	path, err := filepath.Abs(filepath.Join(module, c.file))
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	changed := string(text)
	for _, e := range c.edits {
		if n := strings.Count(changed, e.old); n != 1 {
			return nil, fmt.Errorf("%s: %q stands %d times in %s, expected once: change the control with the code", c.name, e.old, n, c.file)
		}
		changed = strings.Replace(changed, e.old, e.new, 1)
	}
	return map[string][]byte{path: []byte(changed)}, nil
}

// controls runs those with the names given, or all: the test of each must fail.
func (r *runner) controls(ctx context.Context, module string, all []control, names []string) (err error) {
	if r.scratch, err = os.MkdirTemp("", "mutants"); err != nil {
		return err
	}
	defer os.RemoveAll(r.scratch)
	survivors := 0
	for _, c := range all {
		if len(names) > 0 && !slices.Contains(names, c.name) {
			continue
		}
		begin := time.Now()
		texts, err := c.texts(module)
		if err != nil {
			return err
		}
		packages, _, err := listed(module, []string{"./" + c.pkg})
		if err != nil {
			return err
		}
		binaries, err := build(ctx, module, r.scratch, packages, texts, "-tags", c.tags)
		if err != nil {
			return err
		}
		env, err := programsToo(ctx, r.scratch)
		if err != nil {
			return err
		}
		passed, inTime, out := run(ctx, binaries[packages[0].ImportPath], packages[0].Dir, r.scratch, 5*time.Minute, env, "-test.run", "^"+c.test+"$", "-test.v")
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !strings.Contains(string(out), c.test) {
			return fmt.Errorf("%s: there is no test %s in %s", c.name, c.test, c.pkg)
		}
		found := "found"
		if passed && inTime {
			found = "NOT FOUND"
			survivors++
		}
		r.say("%-9s %s by %s of %s, after %v", found, c.name, c.test, c.pkg, time.Since(begin).Round(time.Second))
	}
	if survivors > 0 {
		return fmt.Errorf("%w: %d", errSurvived, survivors)
	}
	return nil
}

// controls are changes that once passed all tests, or that a test exists for.
var controls = []control{
	{name: "the first run writes in place", file: "xla/runner.go", pkg: "xla", test: "TestF17_theFirstRunCopies",
		edits: []edit{{"c.copyFirst && !c.ranOnce.Load()", "c.copyFirst && false"}}},
	{name: "a state without its gate", file: "internal/gate/gate.go", pkg: "managed", test: "TestF46_stateBesideATraining",
		edits: []edit{{"return !g.changer && (!change || g.readers == 0)", "return true"}}},
	{name: "equal scores one by one", file: "plots/classified.go", pkg: "plots", test: "TestPeers_curves",
		edits: []edit{{"scores[order[i+1]] != scores[example]", "true"}}},
	{name: "a report that takes names for HTML", file: "plots/report.go", pkg: "plots", test: "TestReport",
		edits: []edit{{"return html.EscapeString(clean(v))", "return clean(v) + html.EscapeString(\"\")"}}},
	{name: "arrows of two blocks on one track", file: "plots/network_edges.go", pkg: "plots", test: "TestNetwork_noEdgeLooksLikeAnother",
		edits: []edit{{"return end+track/2 < s.low", "return s.low >= 0"}}},
	{name: "an arrow that ends where another begins", file: "plots/network_edges.go", pkg: "plots", test: "TestNetwork_noEdgeLooksLikeAnother",
		edits: []edit{{"return i != from && ", "return i < 0 && "}}},
	{name: "all that are not quite all", file: "plots/confusion.go", pkg: "plots", test: "TestConfusion_roundsToNeitherEnd",
		edits: []edit{{"of < 1 && of > 0.999", "of < 0"}}},
	{name: "a name that pushes its figure out", file: "plots/canvas.go", pkg: "plots", test: "TestLongNames",
		edits: []edit{{"w.cut(name, max(0, width-w.width(figure))) + figure", "w.cut(name+figure, width)"}}},
	{name: "a line through a gap", file: "plots/chart.go", pkg: "plots", test: "TestHistory",
		edits: []edit{{"\t\t\tend()\n\t\t\tcontinue", "\t\t\tcontinue"}}},
	{name: "metrics of one name under one tag", file: "callbacks/tensorboard/writer.go", pkg: "callbacks/tensorboard", test: "TestTags_ofStatefulMetrics",
		edits: []edit{{"e.Collection == loop.Stateful && ", "e.Collection == loop.Stateful || "}}},
	{name: "scalars as tensors", file: "callbacks/tensorboard/event.go", pkg: "callbacks/tensorboard", test: "TestTensorBoardSees",
		edits: []edit{{"return message{}.text(1, tag).float32(2, float32(v))", "return value(tag, \"scalars\", nil, 1, tensor(dtDouble).float(6, v))"}}},
	{name: "statistics that count as parameters", file: "flaxlike/report/report.go", pkg: "flaxlike/report", test: "TestSave_saysOneThingOnce",
		edits: []edit{{"Size: l.Size - l.Fixed", "Size: l.Size"}}},
	{name: "arrows that forget the inputs", file: "flaxlike/summary.go", pkg: "flaxlike/report", test: "TestSave_ofWhatThereIs",
		edits: []edit{{"\t\tcase taken:\n", "\t\tcase taken && false:\n"}}},
	{name: "a mask that stays behind", file: "flaxlike/masks.go", pkg: "flaxlike", test: "TestMasks_asKeras",
		edits: []edit{{"\tall[y] = mask\n}", "}"}}},
	{name: "a model's description that may rot", file: "flaxlike/saved.go", pkg: "flaxlike", test: "TestOpen_rotten",
		edits: []edit{{"sum != metadata[descriptionSum]", "sum == \"\""}}},
	{name: "a part of a model that takes what does not fit", file: "flaxlike/copied.go", pkg: "flaxlike", test: "TestCopyFrom",
		edits: []edit{{"case has != own:", "case false:"}}},
	{name: "layers of nn without the mask", file: "flaxlike/summary.go", pkg: "flaxlike", test: "TestLayers_ofEveryKind",
		edits: []edit{{"t, l := traceOf(scope, x), known(l)", "t, _ := traceOf(scope, x), known(l)"}}},
	{name: "figures of the last batch", file: "flaxlike/figures.go", pkg: "flaxlike", test: "TestAverageIsOfTheEpoch",
		edits: []edit{{"losses = append(losses, mean)", "losses = append(losses, i)"}}},
	{name: "an epoch without its rest", file: "flaxlike/fit.go", pkg: "flaxlike", test: "TestHistory",
		edits: []edit{{"order = append(order, data.KeepRemainder())", "order = append(order, data.Epochs(1), data.Forever())"}}},
	{name: "a loss of all places", file: "flaxlike/masks.go", pkg: "flaxlike", test: "TestMasks_asKeras",
		edits: []edit{{"number(wide(both(places, examples)))", "number(all)"}}},
	{name: "a relu that climbs at 0", file: "nn/nn.go", pkg: "flaxlike", test: "TestSlopesAtTies",
		edits: []edit{{"graph.Max(graph.ScalarZero(x.Graph(), x.DType()), x)", "graph.Max(x, graph.ScalarZero(x.Graph(), x.DType()))"}}},
	{name: "names that only new files have", file: "managed/checkpoint_old.go", pkg: "flaxlike", test: "TestFit_goesOnFromLayersOfGoMLX",
		edits: []edit{{"{\"recurrent_kernel\", \"recurrent\"}, ", ""}}},
	{name: "a model without its gate", file: "internal/gate/gate.go", pkg: "flaxlike", test: "TestR02_predictBesideAFit",
		edits: []edit{{"return !g.changer && (!change || g.readers == 0)", "return true"}}},
	{name: "weights that change within a batch", file: "serve/batcher_run.go", pkg: "serve", test: "TestBatcher_runsTogetherWhatWaits",
		edits: []edit{{"\t\t\tcase err == nil:\n", "\t\t\tcase err == nil:\n\t\t\t\toutputs, _ = b.predict(context.Background(), batch)\n"}}},
	{name: "weights that change within a batch beside a Fit", file: "serve/batcher_run.go", pkg: "flaxlike", test: "TestServe_besideAFit",
		edits: []edit{{"\trows := batch.Fields[0].Array.Len()\n", "\trows := batch.Fields[0].Array.Len()\n\tagain, _ := b.of.PredictStep(ctx, batch)\n" +
			"\tfor name, a := range outputs {\n\t\treflect.Copy(reflect.ValueOf(a.Flat), reflect.ValueOf(again[name].Slice(0, rows/2).Flat))\n\t}\n"}}},
	{name: "a request that is read when its caller has gone", file: "serve/batcher_run.go", pkg: "serve", test: "TestBatcher_cancelledInABatch",
		edits: []edit{{"return together, b.stack(together, b.sizeFor(rows)), 0, false", "return together, data.Batch{Fields: []data.Field{data.Named(\"x\", together[0].fields[0].Flat, 1)}}, 0, false"}}},
	{name: "other data of the same size in silence", file: "data/batches.go", pkg: "flaxlike", test: "TestFit_tellsOtherDataOfTheSameSize",
		edits: []edit{{"return fmt.Sprintf(\"%08x\", sum.Sum32())", "return fmt.Sprintf(\"%08x\", 0)"}}},
	{name: "a second end of a Fit", file: "flaxlike/fit_check.go", pkg: "flaxlike", test: "TestFit_refusesAnotherEndAmongItsCallbacks",
		edits: []edit{{"if plan.Until != nil {", "if false {"}}},
	{name: "a lost terminal that loses the run", file: "loop/signal.go", pkg: "loop", test: "TestWithSignals_ofALostTerminal",
		edits: []edit{{"if !signal.Ignored(syscall.SIGHUP) {", "if false {"}}},
	{name: "a panic without its place", file: "internal/shield/shield.go", pkg: "examples", test: "TestPanic_saysItsLine",
		edits: []edit{{"graphs.PanicLine(value)", "graphs.PanicLine(value)[:0]"}}},
	{name: "a drained server that keeps connections", file: "serve/handler.go", pkg: "serve", test: "TestHandler",
		edits: []edit{{"w.Header().Set(\"Connection\", \"close\")", "_ = w"}}},
	{name: "a model that is ready when it is closed", file: "serve/batcher.go", pkg: "serve", test: "TestHandler_ofAPredictorThatIsClosed",
		edits: []edit{{"b.ready && !b.closed && !b.gone", "b.ready && !b.closed"}}},
	{name: "an example with labels", file: "serve/batcher.go", pkg: "serve", test: "TestNew_refusesWhatThePredictorDoesNotTake",
		edits: []edit{{"len(names) > 0 && !slices.Contains(names, in.Name)", "false && !slices.Contains(names, in.Name)"}}},
	{name: "a fault that fails its batch", file: "serve/batcher_run.go", pkg: "serve", test: "TestBatcher_aFaultIsOfItsRequestAlone",
		edits: []edit{{"len(together) == 1 ||", "len(together) > 0 ||"}}},
	{name: "a view that is written over", file: "managed/storage.go", pkg: "flaxlike", test: "TestR02_predictBesideAFit",
		edits: []edit{{"\tif !p.held() {\n", "\tif true {\n"}}},
	{name: "one call for all runs", file: "xla/runner.go", pkg: "flaxlike", test: "TestR02_predictByManyGoroutines",
		edits: []edit{{"one, c.idle = c.idle[last], c.idle[:last]", "one = c.idle[last]"}}},
	{name: "one call for the runs of all loops", file: "xla/runner.go", pkg: "managed", test: "TestF30_loopsInOneProcess",
		edits: []edit{{"one, c.idle = c.idle[last], c.idle[:last]", "one = c.idle[last]"}}},
	{name: "a gate that stays open", file: "internal/gate/gate.go", pkg: "managed", test: "TestF41_useAfterClose",
		edits: []edit{{"\tcase g.closed:\n\t\tg.mu.Unlock()", "\tcase false:\n\t\tg.mu.Unlock()"}}},
	{name: "readers of a buffer at once", file: "xla/pjrt/host.go", pkg: "xla/pjrt", test: "TestR21_readersOfOneBuffer",
		edits: []edit{{"\tb.refer.Lock()\n\tcopied", "\tcopied"}, {"\tb.refer.Unlock()\n\terr := p", "\terr := p"}}},
	{name: "memory of C that points at what Go has freed", file: "xla/pjrt/call.go", pkg: "xla/pjrt", test: "TestR21_callsUnderTheCollector",
		edits: []edit{{"*(*uintptr)(unsafe.Pointer(place)) = uintptr(unsafe.Pointer(to))", "*place = unsafe.Pointer(to)"}}},
	{name: "a step that waits for itself", file: "managed/sharing.go", pkg: "managed", test: "TestF46_waitsEnd",
		edits: []edit{{"h != nil && h.goroutine == goroutine()", "h != nil && false"}}},
	{name: "a step's function for another one's state", file: "managed/sharing.go", pkg: "managed", test: "TestF46_whatAStepsFunctionAsks",
		edits: []edit{{"h != nil && h.goroutine == goroutine()", "h != nil"}}},
	{name: "tracked inputs without a gradient", file: "managed/report.go", pkg: "managed", test: "TestR11_trackedInputsKeepTheirGradient",
		edits: []edit{{"\tinputs = slices.Clone(inputs)\n", ""}}},
	{name: "a scalar beside padding", file: "managed/report.go", pkg: "managed", test: "TestR05_trackedScalarsOfAPaddedBatch",
		edits: []edit{{"!has && !b.masked && b.ofBatch(v)", "false"}}},
	{name: "4 GiB more for each image", file: "data/images.go", pkg: "data", test: "TestF28_MemoryOfImages",
		edits: []edit{{"\tresample(decoded, format, to)\n", "\tresample(decoded, format, to)\n\timage.NewGray(image.Rect(0, 0, 1<<16, 1<<16))\n"}}},
	{name: "colours of the pixel beside it", file: "data/pixels.go", pkg: "data", test: "TestReadRow_isThatOfImageColor",
		edits: []edit{{"at := c + (x+k)>>shift", "at := c + (x+k+1)>>shift"}}},
	{name: "a PNG image with a sum that is wrong", file: "internal/png/inflate.go", pkg: "internal/png", test: "TestDecode_damaged",
		edits: []edit{{"adler32.Checksum(to) == binary", "adler32.Checksum(to) != 0 || 0 == binary"}}},
	{name: "a block that ends within quotes", file: "data/csv_blocks.go", pkg: "data", test: "TestCSV_isThatOfEncodingCSV",
		edits: []edit{{"if !inside && !(s.single", "if !(s.single"}, {"			inside = !inside\n", "			inside = inside != true\n"}}},
	{name: "a number that is rounded twice", file: "data/csv_number.go", pkg: "data", test: "TestExactDecimal_isThatOfStrconv",
		edits: []edit{{"word&(1<<29-1) != 1<<28 && ", ""}}},
	{name: "a yield that may be called again", file: "data/prefetch.go", pkg: "data", test: "TestSourceThatGoesOnBehindYieldsFalse",
		edits: []edit{{"for b, err := range source {", "source(func(b B, err error) bool {"},
			{"\t\t\t\tbreak\n\t\t\t}\n\t\t}\n", "\t\t\t\treturn false\n\t\t\t}\n\t\t\treturn true\n\t\t})\n"}}},
	{name: "libtpu asks the metadata server where no TPU is", file: "xla/pjrt/environment.go", pkg: "xla/pjrt", test: "TestEnvironmentWithoutTPU",
		edits: []edit{{`"libtpu") && !mayHaveTPU(root)`, `"libtpu") && false`}}},
	{name: "a machine with a TPU is told that it has none", file: "xla/pjrt/environment.go", pkg: "xla/pjrt", test: "TestEnvironmentWithoutTPU",
		edits: []edit{{`"dev/accel*", "dev/vfio/[0-9]*"`, `"dev/none"`}}},
	{name: "a described program is compiled when it is built", file: "xla/described_program.go", pkg: "xla", test: "TestOpenTopology",
		edits: []edit{{"	p.runs, p.text = made, made.text\n", "	p.runs, p.text = made, made.text\n	_, _ = made.compiled(context.Background())\n"}}},
	{name: "a compiler without a limit", file: "internal/aot/aot.go", pkg: "xla", test: "TestOpenTopology_compilerFails",
		edits: []edit{{"context.WithTimeout(ctx, limit)", "context.WithTimeout(ctx, 99*limit)"}}},
	{name: "reports of another machine", file: "xla/topology.go", pkg: "xla", test: "TestOpenTopology_cache",
		edits: []edit{{"file, read, d.machine.Name, d.machine.Options", "file, read, d.machine.Plugin, d.machine.Options"}}},
	{name: "initial values are drawn for a described machine", file: "managed/initial.go", pkg: "managed", test: "TestDescribed",
		edits: []edit{{"	if s.storage.strategy.Runtime().Topology() != \"\" {\n		return s.describe(fresh)", "	if s.storage.strategy.Runtime().Topology() == \"?\" {\n		return s.describe(fresh)"}}},
	{name: "another handler under the same name", file: "xla/pjrt/ffi.go", pkg: "xla/pjrt", test: "TestRegisterHandler",
		edits: []edit{{"if before == handler {", "if before != nil {"}}},
	{name: "arrays packed over each other", file: "xla/mpi/exchange.c", pkg: "xla/mpi", test: "TestCollectivesOfTwo",
		edits: []edit{{"\t\toffset += size;", "\t\toffset += 0 * size;"}}},
	{name: "the communicator of other ranks", file: "xla/mpi/exchange.c", pkg: "xla/mpi", test: "TestCollectivesOfFour",
		edits: []edit{{" && !memcmp(g->members, c->groups, g->count * sizeof *c->groups)", ""}}},
	{name: "a second -0 that is smaller", file: "xla/mpi/operations.c", pkg: "xla/mpi", test: "TestSpecialNumbers",
		edits: []edit{{"a < b || (a == b && signbit(a)) ? a : b", "a < b ? a : b"}}},
	{name: "subnormal numbers that are kept", file: "xla/mpi/exchange.c", pkg: "xla/mpi", test: "TestSpecialNumbers",
		edits: []edit{{"_mm_setcsr(before | 0x8040);", "_mm_setcsr(before & ~0x8040u);"}, {"restore(before | 1 << 24);", ""}}},
	{name: "an error of MPI that nobody hears of", file: "xla/mpi/exchange.c", pkg: "xla/mpi", test: "TestErrorsOfMPIAreTheRuns",
		edits: []edit{{"TRY(Wait, &received, world.mpi.no_status);", "world.mpi.Wait(&received, world.mpi.no_status);"}}},
	{name: "a library of another launcher", file: "xla/mpi/search.go", pkg: "xla/mpi", test: "TestLaunchersAndLibrariesFit",
		edits: []edit{{"by.open == open && ", ""}}},
	{name: "packed copies of weights", file: "xla/executable.go", pkg: "xla", test: "TestProgram_readsWhatAnotherWroteInPlace",
		edits: []edit{{`"xla_cpu_use_xnnpack"] = false`, `"xla_cpu_use_xnnpack"] = true`}}},
	{name: "a search of 3 s", file: "xla/search.go", pkg: "xla", test: "TestF22_PluginMissing",
		edits: []edit{{`"strings"`, "\"strings\"\n\t\"time\""}, {"missing := &NotFoundError{Plugin: plugin}", "missing := &NotFoundError{Plugin: plugin}\n\ttime.Sleep(3*time.Second)"}}},
	{name: "an installed plugin that is not probed", file: "xla/open.go", pkg: "xla", test: "TestR23_F51_installedPluginRots",
		edits: []edit{{"\treport, err := probeOnce(ctx, found, o.root)\n\tif err != nil {", "\treport, err := probeOnce(ctx, found, o.root)\n\tif err != nil && found.Source != FromInstall {"}}},
	{name: "a panic with its stack in the text", file: "internal/shield/shield.go", pkg: "loop", test: "TestRun_aPanicOfTheData",
		edits: []edit{{`fmt.Sprintf("panic: %v", p.Value)`, `fmt.Sprintf("panic: %v\n%s", p.Value, p.Stack)`}}},
	{name: "EachRun without a shield", file: "loop/option.go", pkg: "loop", test: "TestRun_everyFunctionIsShielded",
		edits: []edit{{"err = Shield(func() error { made = option(); return nil })", "made, err = option(), nil"}}},
	{name: "Interrupts blamed on the last task", file: "loop/run_turn.go", pkg: "loop", test: "TestRun_everyFunctionIsShielded",
		edits: []edit{{"\tr.activity = Activity{hook: h} // for a panic in it; the question is too short for observers\n", ""}}},
	{name: "a cancel 2 s late", file: "loop/signal.go", pkg: "loop", test: "TestF09_signalAtARandomMoment",
		edits: []edit{{`"syscall"`, "\"syscall\"\n\t\"time\""}, {"cancel(&SignalError{sent})", "time.Sleep(2*time.Second)\n\t\t\tcancel(&SignalError{sent})"}}},
	{name: "a save that blocks 100 ms", file: "checkpoint/async.go", pkg: "checkpoint", test: "TestF38_diskSlowerThanTheInterval",
		edits: []edit{{`"sync/atomic"`, "\"sync/atomic\"\n\t\"time\""}, {"d, err := newDraft(step, content)", "time.Sleep(100*time.Millisecond)\n\td, err := newDraft(step, content)"}}},
	{name: "a run that waits for its saves", file: "checkpoint/runs/save.go", pkg: "checkpoint/runs", test: "TestF38_aRunDoesNotWaitForTheDisk",
		edits: []edit{{"\tif s.best { // it", "\tif true { // it"}}},
	{name: "an event left in each run", file: "xla/pjrt/run.c", pkg: "xla/pjrt", test: "TestF18_fortyThousandRuns",
		edits: []edit{{"lazo_destroy_event(api, take(&run->events[d]))", "((void)take(&run->events[d]), (void *)NULL)"}}},
	{name: "an event left in each copy", file: "xla/pjrt/run.c", pkg: "xla/pjrt", test: "TestF17_F18_G30_FailCallK",
		edits: []edit{{"lazo_destroy_event(api, take(&copied.event))", "((void)take(&copied.event), (void *)NULL)"}}},
	{name: "a program left in each rebuild", file: "xla/pjrt/executable.go", pkg: "managed", test: "TestF20_ratesAndShapes",
		edits: []edit{{"\targs := C.lazo_LoadedExecutable_Destroy_Args{executable: o.ptr}\n", ""},
			{`return firstError(err, invoke(p, "LoadedExecutable_Destroy", p.api.LoadedExecutable_Destroy, &args))`, "return err"}}},
	{name: "a full disk passed over", file: "internal/vfs/os.go", pkg: "checkpoint", test: "TestF05_realSmallDisk", tags: "nightly",
		edits: []edit{{"n, err := f.File.Write(p)\n", "n, err := f.File.Write(p)\n\tif err != nil {\n\t\tn, err = len(p), nil\n\t}\n"}}},
	{name: "buckets that share memory", file: "data/sequences.go", pkg: "data", test: "TestBuckets_law",
		edits: []edit{{"waiting[k] = nil\n", "waiting[k] = waiting[k][:0]\n"}}},
	{name: "a batch that is believed where it lies", file: "data/elements.go", pkg: "data", test: "TestStacked_law",
		edits: []edit{{"(i == j || &p[0] == &flat.([]T)[i])", "true"}}},
	{name: "a group on both sides", file: "data/split.go", pkg: "data", test: "TestSplitGrouped",
		edits: []edit{{"return chosen[by.of[r]] })", "return chosen[by.of[r]] || r == rows[len(rows)-1] })"}}},
	{name: "folds that all begin with the same part", file: "data/split.go", pkg: "data", test: "TestFolds",
		edits: []edit{{"next[c] = next[c-1] + by.sizes[c-1]", "next[c] = 0"}}},
	{name: "a scale of other values than are filled in", file: "data/preparation_fit.go", pkg: "data", test: "TestPreparation_numbersAreThoseOfScikitLearn",
		edits: []edit{{"values[i] = *c.Fill", "values[i] = 0"}}},
	{name: "a column scaled by its rounding", file: "data/preparation_fit.go", pkg: "data", test: "TestPreparation_numbersAreThoseOfScikitLearn",
		edits: []edit{{"c.Scale < 10*epsilon", "c.Scale == 0"}}},
	{name: "classes 10 before 9", file: "data/preparation_fit.go", pkg: "data", test: "TestPreparation_classesAreThoseOfScikitLearn",
		edits: []edit{{"_, ok := number(text); return !ok", "_, ok := number(text); return !ok || len(text) > 0"}}},
	{name: "texts that cost no memory", file: "data/csv_rows.go", pkg: "data", test: "TestReadCSV_textsCount",
		edits: []edit{{"texts += int64(len(cell))", "texts += 0 * int64(len(cell))"}}},
	{name: "a run by the wall clock", file: "loop/elapsed.go", pkg: "loop", test: "TestF36_aRunCountsByTheMonotonicClock",
		edits: []edit{{"d = time.Since(c.start)", "d = time.Now().Round(0).Sub(c.start.Round(0))"}}},
	{name: "a bar that dies of its pipe", file: "callbacks/bar.go", pkg: "callbacks", test: "TestF34_barOnAClosedStandardError",
		edits: []edit{{"b.screen.out = quietPipe(f)", "b.screen.out = f"}}},
	{name: "a bar that fails with its pipe", file: "callbacks/bar_pipe_unix.go", pkg: "callbacks", test: "TestF34_barOnABrokenPipe",
		edits: []edit{{"\tif failed != nil {\n", "\tif failed != nil {\n\t\tpanic(failed)\n"}}},
	{name: "a bar whose cursor stays behind it", file: "callbacks/bar_items.go", pkg: "callbacks", test: "TestBar_screens",
		edits: []edit{{`\x1b[J\x1b[?7h\r`, `\x1b[J\x1b[?7h`}}},
	{name: "a compilation that is shown for ever", file: "managed/compiling.go", pkg: "managed", test: "TestCompilingSince",
		edits: []edit{{"c.now--", "_ = c.now"}}},
	{name: "a loop's gradient in the wrong direction", file: "internal/autodiff/loop_gradient.go", pkg: "internal/autodiff", test: "TestLoop",
		edits: []edit{{"Reverse: !l.Reverse", "Reverse: l.Reverse"}}},
	{name: "a saved value that takes the gradient", file: "internal/autodiff/trace.go", pkg: "internal/autodiff", test: "TestLoop",
		edits: []edit{{"return []*graph.Node{nil, nil, v}", "return []*graph.Node{nil, v, nil}"}}},
	{name: "a saved tanh whose gradient takes its input", file: "internal/autodiff/trace.go", pkg: "flow", test: "TestPrograms",
		edits: []edit{{"result = known[node]", "result = node.Inputs()[0]"}}},
	{name: "a body whose values leave it", file: "xla/hlo/trace.go", pkg: "flow", test: "TestWhatABodyMakesStaysThere",
		edits: []edit{{"b.left[v] = true", "_ = v"}}},
	{name: "a branch that is computed where it is not chosen", file: "internal/autodiff/loop.go", pkg: "flow", test: "TestBranches",
		edits: []edit{{"whole := l.Times != nil", "whole := false"}}},
	{name: "an output that is stacked twice", file: "internal/autodiff/loop.go", pkg: "internal/autodiff", test: "TestLoop_stacks",
		edits: []edit{{"if !slices.Contains(out, o) {", "if true {"}}},
	{name: "places and examples as one axis", file: "nn/recurrent.go", pkg: "managed/strategytest", test: "TestDataParallel_exchanges",
		edits: []edit{{"graph.Dot(x, kernel).General([]int{2}, nil, []int{0}, nil)", "graph.Reshape(graph.Dot(graph.Reshape(x, -1, dims[2]), kernel).Product(), dims[0], dims[1], wide)"}}},
	{name: "divided axes joined", file: "xla/hlo/exchange.go", pkg: "managed/strategytest", test: "TestDataParallel_exchanges",
		edits: []edit{{"return len(b.meshes) == 0 || slices", "return len(b.meshes) >= 0 || slices"}}},
	{name: "a normalisation of all examples on each device", file: "xla/hlo/norm.go", pkg: "managed/strategytest", test: "TestDataParallel_exchanges",
		edits: []edit{{"\t\tif len(f.b.meshes) > 0 {\n\t\t\treturn f.normOver", "\t\tif len(f.b.meshes) > 9 {\n\t\t\treturn f.normOver"}}},
	{name: "groups of channels of all examples on each device", file: "xla/hlo/convolution.go", pkg: "managed/strategytest", test: "TestDataParallel_exchanges",
		edits: []edit{{"f.b.cut[v[0]] != nil && axes", "f.b.cut[v[0]] == nil && axes"}}},
	{name: "a normalisation whose gradient forgets the mean", file: "xla/hlo/norm.go", pkg: "managed/strategytest", test: "TestDataParallel",
		edits: []edit{{"ofX = p.two(stablehlo.Subtract, v, p.spread(p.times(ofOffset, 1/p.n)))", "ofX = v"}}},
	{name: "a compilation that is not to be cancelled", file: "xla/described_program.go", pkg: "xla", test: "TestProgram_Prepare",
		edits: []edit{{"func() { end(context.Cause(ctx)) }", "func() {}"}}},
	{name: "a full disk as out of memory", file: "xla/errors.go", pkg: "xla", test: "TestWrapError",
		edits: []edit{{"errors.As(e.Err, &reported) && reported.DiskFull()", "errors.As(e.Err, &reported) && false"}}},
	{name: "axes with another one between reduced as one", file: "xla/hlo/reduce.go", pkg: "xla/hlo", test: "TestReduce_severalAxes",
		edits: []edit{{"if axis != axes[0]+i {", "if false {"}}},
	{name: "padded arrays that overlap put side by side", file: "xla/hlo/joined.go", pkg: "xla/hlo", test: "TestAdd_padded",
		edits: []edit{{"if p.start < at {", "if p.start < 0 {"}}},
	{name: "random numbers that are the same at each place", file: "flow/variables.go", pkg: "flow", test: "TestStrategies",
		edits: []edit{{"if now == was {", "if now == was || of.Path() != \"/count/seen\" && of.Path() != \"/count/rare\" {"}}},
	{name: "a Pad that forgets what it cuts off", file: "internal/autodiff/pad.go", pkg: "internal/autodiff", test: "TestDerivatives",
		edits: []edit{{"Start: max(0, -start), End", "Start: 0, End"}}},
	{name: "windows that do not heed the stride", file: "nn/convolution.go", pkg: "nn", test: "TestPeers",
		edits: []edit{{"{more / 2, more - more/2}", "{(more + 1) / 2, more / 2}"}}},
	{name: "a pool whose last maximum takes the gradient", file: "internal/autodiff/pooling.go", pkg: "internal/autodiff", test: "TestGradientsAtEdges",
		edits: []edit{{"for i := taps - 1; i >= 0; i-- {", "for i := range taps {"}}},
	{name: "a transposed convolution with the odd zero behind", file: "nn/convolution.go", pkg: "nn", test: "TestPeers",
		edits: []edit{{"low = min((both+1)/2, low)", "low = min(both/2, low)"}}},
	{name: "a transposed convolution that is not turned round", file: "nn/convolution.go", pkg: "nn", test: "TestPeers",
		edits: []edit{{"kernel = graph.Reverse(kernel, rangeOf(0, spatial)...)", "_ = graph.Reverse"}}},
	{name: "a causal convolution that sees later places", file: "nn/convolution.go", pkg: "nn", test: "TestPeers",
		edits: []edit{{"[][2]int{{w.reach(0) - 1, 0}}", "[][2]int{{0, w.reach(0) - 1}}"}}},
	{name: "a preparation that forgets what is missing", file: "data/preparation_rows.go", pkg: "data", test: "TestMissing",
		edits: []edit{{"Preparation{file.Columns, file.Missing}", "Preparation{columns: file.Columns}"}}},
	{name: "class weights of a class that none has", file: "flaxlike/check.go", pkg: "flaxlike", test: "TestWeights_byWhichNothingCounts",
		edits: []edit{{"if !there[class] && !s.part {", "if false {"}}},
	{name: "sample weights that are all 0", file: "flaxlike/check.go", pkg: "flaxlike", test: "TestWeights_byWhichNothingCounts",
		edits: []edit{{"if flat[at] != 0 && counts(at) {", "if true {"}}},
	{name: "the highest loss as the best", file: "loop/mode.go", pkg: "callbacks", test: "TestB68_autoMode",
		edits: []edit{{"if !ok || m == known ||", "if true || m == known ||"}}},
	{name: "an initializer for all variables", file: "nn/nn.go", pkg: "flaxlike", test: "TestWithInitializer",
		edits: []edit{{"ok && kernelNames[name]", "ok"}}},
	{name: "an Adam with another epsilon", file: "optim/adam.go", pkg: "nn", test: "TestTrajectories",
		edits: []edit{{"cmp.Or(t.Epsilon, 1e-8)", "cmp.Or(t.Epsilon, 2e-8)"}}},
	{name: "a factor's gradient with a whole diagonal", file: "linalg/linalg.go", pkg: "linalg", test: "TestAsJAX",
		edits: []edit{{"graph.MulScalar(unit(like, n), 0.5)", "graph.MulScalar(unit(like, n), 0)"}}},
	{name: "a norm of an example that leaves its last gradient out", file: "managed/clip.go", pkg: "managed", test: "TestClipByExample",
		edits: []edit{{"range autodiff.Gradient(l, wrt...) {", "range autodiff.Gradient(l, wrt[:len(wrt)-1]...) {"}}},
	{name: "a gradient by a StopGradient", file: "grad/grad.go", pkg: "grad", test: "TestWrongArguments",
		edits: []edit{{"case n.StopGradient():", "case n == nil:"}}},
	{name: "an infinite row that spreads", file: "linalg/linalg.go", pkg: "linalg", test: "TestSolve_singular",
		edits: []edit{{"[]*Node{graph.Where(at[0], at[1], x)}", "[]*Node{graph.Add(x, graph.Where(at[0], at[1], graph.Mul(at[1], graph.ZerosLike(x))))}"}}},
	{name: "a cache whose places begin anew", file: "nn/attention.go", pkg: "nn", test: "TestDecode",
		edits: []edit{{"q, k, v := a.project(scope, x, x, cache.Position)", "q, k, v := a.project(scope, x, x, nil)"}}},
	{name: "a space that stays with those before it", file: "text/split.go", pkg: "text", test: "TestBPE_encodesAsThePeer",
		edits: []edit{{"n < len(s) && n > last", "false && n > last"}}},
	{name: "pairs that come as often in another order", file: "text/train.go", pkg: "text", test: "TestBPE_trainsAsThePeer",
		edits: []edit{{"a.of[0] < b.of[0]", "a.of[0] > b.of[0]"}}},
	{name: "a top-p that leaves one token too few", file: "text/sampling.go", pkg: "text", test: "TestSampling_asThePeer",
		edits: []edit{{"kept = n + 1", "kept = max(n, 1)"}}},
	{name: "tokens that are written over each other in a cache", file: "examples/gpt/write.go", pkg: "examples/gpt", test: "TestCache",
		edits: []edit{{"setPosition(caches[0].Position)", "setPosition(position)"}}},
	{name: "a scale that Platt's targets do not smooth", file: "flaxlike/calibration.go", pkg: "flaxlike", test: "TestCalibrate_asThePeers",
		edits: []edit{{"return (ones + 1) / (ones + 2)", "return 1"}}},
	{name: "a calibration of other weights", file: "flaxlike/model.go", pkg: "flaxlike", test: "TestCalibrate_isKept",
		edits: []edit{{"\tif of == m.train {\n\t\tm.seen.changes.Add(1)", "\tif of == nil {\n\t\tm.seen.changes.Add(1)"}}},
	{name: "a threshold of the least that reaches its aim", file: "flaxlike/thresholds.go", pkg: "flaxlike", test: "TestChooseThresholds",
		edits: []edit{{"t.Precision >= a.least && (first || t.Recall > best.Recall)", "t.Precision >= a.least && first"}}},
	{name: "a mean of logits", file: "flaxlike/ensemble.go", pkg: "flaxlike", test: "TestEnsemble",
		edits: []edit{{"\tmaps.Copy(all, probabilities)\n", "\tmaps.Copy(probabilities, all)\n"}}},
	{name: "predictions in the order of the folds", file: "flaxlike/folds.go", pkg: "flaxlike", test: "TestCrossValidate_asThePeer",
		edits: []edit{{"from[place] = i", "from[i] = i + 0*place"}}},
	{name: "a trial that begins anew when it goes on", file: "flaxlike/search_run.go", pkg: "flaxlike", test: "TestSearch_halving",
		edits: []edit{{"if last || record.Failed != \"\" {\n\t\t\terrs", "if true {\n\t\t\terrs"}, {"if last || record.Failed != \"\" {\n\t\t\t\tif err := r.sweep", "if true {\n\t\t\t\tif err := r.sweep"}}},
	{name: "a record that is made where it is read", file: "flaxlike/search_folder.go", pkg: "flaxlike", test: "TestSearch_killedAtEachRecord",
		edits: []edit{{"half := name + \".part\"", "half := name"}, {"f.files.Rename(half, name)", "error(nil)"}}},
	{name: "a best model that is swept away", file: "flaxlike/search_run.go", pkg: "flaxlike", test: "TestSearch_findsTheBest",
		edits: []edit{{"last && !(ok && number == best.Number)", "last && !(ok && number != best.Number)"}}},
	{name: "a search that takes other examples", file: "flaxlike/search.go", pkg: "flaxlike", test: "TestSearch_ofOtherExamples",
		edits: []edit{{"return batch.Deal.Content", "return batch.Deal.Content[:0]"}}},
	{name: "trials of two Fits in one table", file: "flaxlike/search_run.go", pkg: "flaxlike", test: "TestSearch_ofAnotherFit",
		edits: []edit{{"now != then {", "now == \"\" {"}}},
	{name: "a lowest rate that the first step shows to be too high", file: "callbacks/plateau.go", pkg: "callbacks", test: "TestMinRate_aboveTheRateOfTheFirstStep",
		edits: []edit{{"p.unknown = err != nil", "p.unknown = false"}}},
	{name: "metrics that add as float32", file: "metrics/sums.go", pkg: "metrics", test: "TestMetrics_1e8Examples",
		edits: []edit{{"both[i] = graph.Add(a[i], b[i])", "both[i] = graph.ConvertDType(graph.ConvertDType(graph.Add(a[i], b[i]), dtype-1), dtype)"}}},
	{name: "metrics that GPUs reduce on their way", file: "xla/hlo/exchange.go", pkg: "xla", test: "TestCompileOver_gathersWideNumbers",
		edits: []edit{{"t.Bits() == 64", "t.Bits() == 63"}}},
	{name: "a bin of one device counted by each", file: "xla/hlo/exchange.go", pkg: "xla", test: "TestCompileOver_gathersWideNumbers",
		edits: []edit{{"rule.neutral(operand.Shape().DType))", "1)"}}},
	{name: "a convolution of integers without its middle digits", file: "xla/hlo/convolution.go", pkg: "xla/hlo", test: "TestTargets",
		edits: []edit{{"for j := 0; (i+j)*digitBits < t.Bits(); j++ {", "for j := i; j == i; j++ {"}}},
	{name: "a tap that takes what is outside", file: "xla/hlo/window.go", pkg: "xla/hlo", test: "TestTargets",
		edits: []edit{{"takes := c.two(stablehlo.And, inside, c.one(stablehlo.Not, stays))", "takes := c.one(stablehlo.Not, stays)"}}},
	{name: "a loop of unknown length that counts once without a word", file: "xla/cost/count.go", pkg: "xla/cost", test: "TestCount_loops",
		edits: []edit{{"t.loops[strings.TrimSpace(i.name+\" \"+at.String())] = true", "_ = at"}}},
	{name: "a loop whose body counts once", file: "xla/cost/count.go", pkg: "xla/cost", test: "TestCount_loops",
		edits: []edit{{"t.add(inner, trips)", "t.add(inner, 1)"}}},
	{name: "an asynchronous collective that counts in each of its fusions", file: "xla/cost/exchange.go", pkg: "xla/cost", test: "TestCount_sharded",
		edits: []edit{{"if divided(i) && !c.begins[of] &&", "if false && !c.begins[of] &&"}}},
	{name: "a convolution that multiplies its padding", file: "xla/cost/window.go", pkg: "xla/cost", test: "TestCount_byHand",
		edits: []edit{{"count += float64(max(0, last-first+1))", "count += float64(max(output, last-first+1))"}}},
	{name: "groups that take the wrong axis for theirs", file: "xla/cost/exchange.go", pkg: "xla/cost", test: "TestCount_exchanged",
		edits: []edit{{"transposed(dims, append(outside, inside...))", "transposed(dims, append(inside, outside...))"}}},
	{name: "a plan that fits whatever the compiler says", file: "xla/plan/report.go", pkg: "xla/plan", test: "TestUnfit",
		edits: []edit{{"if !errors.Is(err, xla.ErrOutOfMemory) {", "if errors.Is(err, xla.ErrOutOfMemory) {"}}},
	{name: "a plan whose status says that all fits", file: "cmd/lazo/plan.go", pkg: "cmd/lazo", test: "TestPlan_unfit",
		edits: []edit{{"failed = failed || !r.Fit.Fits", "failed = failed || r.Fit.Has < 0"}}},
	{name: "a cost without a word of what is not in it", file: "xla/inspect.go", pkg: "xla", test: "TestCost_fromHLO",
		edits: []edit{{"Uncounted: counts.Uncounted, ", ""}}},
	{name: "lazo's count under the plugin's name", file: "xla/inspect.go", pkg: "xla", test: "TestCost_fromHLO",
		edits: []edit{{"BytesAccessed: counts.Bytes, Source: FromHLO", "BytesAccessed: counts.Bytes, Source: FromPlugin"}}},
	{name: "a compiler that goes on when nobody waits", file: "xla/lower.go", pkg: "xla", test: "TestCompileStableHLO_context",
		edits: []edit{{"report, err := p.compiled(ctx)", "report, err := p.compiled(context.Background())"}}},
	{name: "a batch that is not divided", file: "xla/plan/step.go", pkg: "xla/plan", test: "TestStep_divided",
		edits: []edit{{"axes[0] = `{\"data\"}`", "axes[0] = \"{}\""}}},
	{name: "a rank that others wait for without end", file: "dist/judge.go", pkg: "dist", test: "TestJudge",
		edits: []edit{{"if now.Sub(from) <= limit {", "if waited >= 0 {"}}},
	{name: "a rank that stopped", file: "dist/judge.go", pkg: "dist", test: "TestJudge",
		edits: []edit{{"!v.left && silent > j.deadline", "v.left && silent > j.deadline"}}},
	{name: "a rank that died unseen", file: "dist/control.go", pkg: "dist", test: "TestF54_killed",
		edits: []edit{{"if h.over || h.views[r].left {", "if h.over || r >= 0 {"}}},
	{name: "a ring with a message too few", file: "bench/scale/cost.go", pkg: "bench/scale", test: "TestSimulation_isTheFormula",
		edits: []edit{{"	return 2 * float64(n-1) * l.message(bytes/float64(n))", "	return float64(2*n-3) * l.message(bytes/float64(n))"}}},
	{name: "cards that hosts do not share", file: "bench/scale/simulate.go", pkg: "bench/scale", test: "TestSimulation_hosts",
		edits: []edit{{"		return between, n + from/each", "		return between, from"}}},
	{name: "more ranks than XLA divides a program over", file: "xla/across.go", pkg: "xla", test: "TestRankLimit",
		edits: []edit{{"if ranks > maxRanks {", "if ranks > 2*maxRanks {"}}},
	{name: "a rank that tries to come without a pause that grows", file: "dist/control.go", pkg: "dist", test: "TestPause",
		edits: []edit{{"		d += d / 2\n", ""}}},
	{name: "a message that is encoded for each rank", file: "dist/control.go", pkg: "dist", test: "TestTell_encodesOnce",
		edits: []edit{{"			l.push(f, ", "			l.push(slices.Clone(f), "}}},
	{name: "an agreement without the last rank", file: "dist/control.go", pkg: "dist", test: "TestAnswer_whenAllHaveCome",
		edits: []edit{{"	h.came = 0\n", ""}}},
	{name: "calls of ranks that differ", file: "dist/job.go", pkg: "dist", test: "TestJob_agreement",
		edits: []edit{{"if head[0] != -head[1] {", "if head[0] < hash {"}}},
	{name: "a process of an earlier start", file: "dist/control.go", pkg: "dist", test: "TestF59_refuses",
		edits: []edit{{"case c.Attempt != w.Attempt:", "case false:"}}},
	{name: "a batch script that waits for ranks", file: "dist/launcher.go", pkg: "dist", test: "TestFind",
		edits: []edit{{"name: \"Slurm\", mark: \"SLURM_STEP_NUM_TASKS\"", "name: \"Slurm\", mark: \"SLURM_NTASKS\""}}},
	{name: "a signal that stays with the launcher", file: "dist/launch/launch.go", pkg: "dist/launch", test: "TestRun_passesSignals",
		edits: []edit{{"signalAll(pid, signalOf(ctx))", "_ = pid"}}},
	{name: "an installed library of a row that moved", file: "xla/install/receipt.go", pkg: "xla/install", test: "TestTableMovesOn",
		edits: []edit{{"w.LibrarySHA256 != \"\" && slices.Contains(r.Wheels, w.SHA256)", "w.LibrarySHA256 != \"\" && w.Kind == r.Kind && slices.Contains(r.Wheels, w.SHA256)"}}},
	{name: "a file of a wheel over another", file: "xla/install/archive.go", pkg: "xla/install", test: "TestF26_HostileArchives",
		edits: []edit{{"(other == name || wanted(name, patterns) || wanted(other, patterns))", "other == name"}}},
	{name: "processes whose schedules each ask their own clock", file: "loop/elapsed.go", pkg: "loop", test: "TestJob_agrees",
		edits: []edit{{"d = *c.agreed", "d = time.Since(c.start)"}}},
	{name: "data that ends in one process and is over in all", file: "loop/run_agree.go", pkg: "loop", test: "TestJob_messages",
		edits: []edit{{"first == 1 && most == least:", "first <= 1:"}}},
	{name: "a block of which one process makes more steps", file: "loop/run_agree.go", pkg: "loop", test: "TestJob_agrees",
		edits: []edit{{"r.leaveOut(r.taken - least - inHand)", "r.leaveOut(0)"}}},
	{name: "a wish to stop that one process follows at once", file: "loop/run_turn.go", pkg: "loop", test: "TestJob_messages",
		edits: []edit{{"if stop, err = r.agreeOnTurn(stop); err != nil {\n\t\t\treturn false, err\n\t\t}\n\t}\n\treturn", "_, err = r.agreeOnTurn(stop)\n\t}\n\treturn"}}},
	{name: "ranks that all take the first part of a batch", file: "data/batches.go", pkg: "data", test: "TestShare_union",
		edits: []edit{{"i += h.rank * each", "i += 0 * each"}}},
	{name: "exchanges without an order", file: "xla/spmd/rewrite.go", pkg: "xla/spmd", test: "TestSixSums_haveOneOrder",
		edits: []edit{{"last, err = r.call(c, l.joined, last)", "last, err = r.call(c, l.joined, after)"}}},
	{name: "an exchange in a loop that takes no part in the order", file: "xla/spmd/rewrite.go", pkg: "xla/spmd", test: "TestRewrite_many",
		edits: []edit{{"last, err = r.descend(c, l.joined[0], last)", "_, err = r.descend(c, l.joined[0], last)"}}},
	{name: "sums that need each other as one call", file: "xla/spmd/rewrite.go", pkg: "xla/spmd", test: "TestRewrite_joins",
		edits: []edit{{"l.key = fmt.Sprint(depth, x.op", "l.key = fmt.Sprint(0, x.op"}}},
	{name: "sums over other groups as one call", file: "xla/spmd/rewrite.go", pkg: "xla/spmd", test: "TestRewrite_joins",
		edits: []edit{{"x.kinds(), x.groups)", "x.kinds())"}}},
	{name: "an exchange that is not known and is left", file: "xla/spmd/exchange.go", pkg: "xla/spmd", test: "TestRewrite_refuses",
		edits: []edit{{"\"send\", \"recv\", ", ""}}},
	{name: "groups in a field that is not known", file: "xla/spmd/exchange.go", pkg: "xla/spmd", test: "TestRewrite_refuses",
		edits: []edit{{"if !slices.Contains(known, f.number) {", "if false {"}}},
	{name: "processes that do not fetch what rank 0 saves", file: "checkpoint/runs/job.go", pkg: "checkpoint/runs", test: "TestJob_savesAndResumes",
		edits: []edit{{"return give(context.WithoutCancel(ctx), r.State())", "return nil"}}},
	{name: "a key that is put twice", file: "dist/store.go", pkg: "dist", test: "TestStore",
		edits: []edit{{"case m.Kind == kindPut && has:", "case m.Kind == kindPut && has && m.ID < 0:"}}},
	{name: "a store that forgets who waits", file: "dist/store.go", pkg: "dist", test: "TestStore_ofOneProcess",
		edits: []edit{{"\t\tfor _, w := range v.waiting[key] {\n", "\t\tfor _, w := range v.waiting[\"\"] {\n"}}},
	{name: "answers that are left out as beats are", file: "dist/control.go", pkg: "dist", test: "TestStore",
		edits: []edit{{"m.Kind == kindBeat && len(l.queue) >= mostBeats", "len(l.queue) >= mostBeats"}}},
	{name: "a key that is there, for a plugin an unknown fault", file: "xla/pjrt/errors.go", pkg: "xla/pjrt", test: "TestKeyValueStore_joinsClients",
		edits: []edit{{"\tAlreadyExists: ErrKeyExists,\n", ""}}},
}
