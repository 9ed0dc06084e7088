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

type control struct {
	name, file string
	edits      []edit
	pkg, test  string
	tags       string
}

// old occurs once in the file.
type edit struct{ old, new string }

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
			return nil, fmt.Errorf("%s: %q appears %d times in %s, expected once: change the control with the code", c.name, e.old, n, c.file)
		}
		changed = strings.Replace(changed, e.old, e.new, 1)
	}
	return map[string][]byte{path: []byte(changed)}, nil
}

// Each control's test must fail.
func (r *runner) controls(ctx context.Context, module string, all []control, names []string) (err error) {
	for _, name := range names {
		if !slices.ContainsFunc(all, func(c control) bool { return c.name == name }) {
			return fmt.Errorf("no control is named %q: give a whole name of controls.go", name)
		}
	}
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
		dir := filepath.Join(module, c.pkg) // perhaps in a nested module
		packages, _, err := listed(dir, []string{"."})
		if err != nil {
			return err
		}
		binaries, err := build(ctx, dir, r.scratch, packages, texts, "-tags", c.tags)
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

// controls once passed all tests, or have a test. Those of a package's tests are in controls_PACKAGE.go.
var controls = slices.Concat(
	controlsCallbacks, controlsCheckpoint, controlsCmd, controlsData, controlsDist, controlsFlaxlike,
	controlsInternal, controlsLoop, controlsManaged, controlsMetrics, controlsNn, controlsOptim,
	controlsPretrained, controlsServe, controlsXla, newest,
)

// newest are controls that are not yet in the file of their package.
var newest = []control{
	{name: "a cell that is hidden in another image", file: "flaxlike/report/occlusion.go", pkg: "flaxlike/report", test: "TestSave_saliency",
		edits: []edit{{"flat[(cell+1)*size:][:size]", "flat[cell*size:][:size]"}}},
	{name: "a word that stays in its text", file: "flaxlike/report/occlusion.go", pkg: "flaxlike/report", test: "TestSave_words",
		edits: []edit{{"texts[k][:w.from] +", "texts[k][:w.to] +"}}},
	{name: "a whole number of a text without its class", file: "data/tables/categories.go", pkg: "data/tables", test: "TestCategories_wholeNumbersOfTexts",
		edits: []edit{{"if isText && !wholeNumber.MatchString(text) {", "if isText {"}}},
	{name: "a version of the class of another", file: "data/tables/categories.go", pkg: "data/tables", test: "TestCategories_wholeNumbersOfTexts",
		edits: []edit{{"if isText && !wholeNumber.MatchString(text) {", "if false {"}, {" || isText && !wholeNumber.MatchString(class) {", " {"}}},
	{name: "numbers in Go's syntax", file: "internal/arrays/arrays.go", pkg: "data/tables", test: "TestNumbers_areDecimal",
		edits: []edit{{"if strings.ContainsAny(text, \"_xX\") {", "if strings.ContainsAny(text, \"\") {"}}},
	{name: "a server without a date in its Layout", file: "data/tables/example.go", pkg: "data/tables", test: "TestDates_exampleOfALayout",
		edits: []edit{{"cmp.Or(of.Layout, time.DateOnly)", "cmp.Or(time.DateOnly, of.Layout)"}}},
	{name: "a history of texts", file: "flaxlike/report/answers.go", pkg: "flaxlike/report", test: "TestForecasts_ofATable",
		edits: []edit{{"\t\t\tif err != nil {\n\t\t\t\treturn nil\n\t\t\t}\n\t\t\tall[i] = number", "\t\t\tif err != nil || true {\n\t\t\t\treturn nil\n\t\t\t}\n\t\t\tall[i] = number"}}},
	{name: "importance by the accuracy of a few positives", file: "flaxlike/report/classes.go", pkg: "flaxlike/report", test: "TestImportance_ofAFewPositives",
		edits: []edit{{"c.kind == \"binary\" && c.places == 1 {", "c.kind == \"\" {"}}},
	{name: "rows whose windows are refused", file: "serve/rows.go", pkg: "serve", test: "TestRows_ofWindows",
		edits: []edit{{"nested(decoder, b.inputs[at].Dims)", "nested(decoder, b.inputs[at].Dims[:0])"}}},
	{name: "a list of rows without a bound", file: "serve/rows.go", pkg: "serve", test: "TestRows_ofWindows",
		edits: []edit{{"if len(list) == dims[0] {", "if false {"}}},
	{name: "a further column of CSV that is refused", file: "serve/rows.go", pkg: "serve", test: "TestRows",
		edits: []edit{{"		return !ok // as", "		return ok && false // as"}}},
	{name: "an infinite answer over HTTP", file: "serve/rows.go", pkg: "serve", test: "TestRows",
		edits: []edit{{"if what != \"\" {", "if false {"}}},
	{name: "an infinite answer without an error", file: "cmd/lazo/model_predict.go", pkg: "cmd/lazo", test: "TestModelPredict_infiniteAnswers",
		edits: []edit{{"if all > 0 {", "if false {"}}},
	{name: "an infinity that is a number of JSON", file: "internal/answers/answers.go", pkg: "internal/answers", test: "TestNotFinite",
		edits: []edit{{"if text, ok := special(v); ok {", "if text, ok := special(v); ok && false {"}}},
	{name: "logarithms of labels below 0", file: "flaxlike/bounds.go", pkg: "flaxlike", test: "TestLabels_bounds",
		edits: []edit{{"r.low, r.why = 0, l.Name+\" takes numbers from 0 on\"", "r.why = l.Name + \" takes numbers from 0 on\""}}},
	{name: "days that lose their minutes", file: "data/tables/dates.go", pkg: "data/tables", test: "TestDates_daysKeepTheTime",
		edits: []edit{{"off*24*60*60 > 30 {", "off*24*60*60 > 300 {"}}},
	{name: "an empty time that is named as another row", file: "data/series/times.go", pkg: "data/series", test: "TestTime_hasItsOrder",
		edits: []edit{{"slices.Index(texts, \"\"); i >= 0 {", "slices.Index(texts, \"\"); i > 9 {"}}},
	{name: "a missing number as a text", file: "data/tables/preparation_rows.go", pkg: "data/tables", test: "TestTable_numbersOfTexts",
		edits: []edit{{"!is && err == nil && text != \"\" {", "!is && err == nil {"}}},
	{name: "a window of a wrong length by its Go type", file: "data/tables/preparation_rows.go", pkg: "data/tables", test: "TestPreparation_ofWindows",
		edits: []edit{{"	if list.Len() != dims[0] {", "	if false {"}}},
	{name: "CSV on stdin without a source", file: "cmd/lazo/model_rows.go", pkg: "cmd/lazo", test: "TestModelPredict",
		edits: []edit{{"path == \"-\" && errors.As", "path == \"\" && errors.As"}}},
	{name: "a preparation without labels, and no hint", file: "flaxlike/build.go", pkg: "flaxlike", test: "TestField_ofAPreparation",
		edits: []edit{{"		todo = fmt.Sprintf(\"the preparation makes", "		_ = fmt.Sprintf(\"the preparation makes"}}},
	{name: "columns of a function as crossed ones", file: "data/tables/prepared.go", pkg: "data/tables", test: "TestFunction",
		edits: []edit{{"	if s.As == asFunction {", "	if false {"}}},
	{name: "windows by one scale", file: "nn/norm.go", pkg: "nn", test: "TestWindowScale",
		edits: []edit{{"centred := graph.Sub(x, mean)", "centred := x"}}},
	{name: "answers in the units of another column", file: "nn/norm.go", pkg: "nn", test: "TestWindowScale",
		edits: []edit{{"graph.AxisElem(w.Of)", "graph.AxisElem(0)"}}},
	{name: "windows that a file forgets", file: "flaxlike/config.go", pkg: "flaxlike", test: "TestOpen_everyLayer",
		edits: []edit{{"return holding(l, in)", "if w, ok := l.(nn.WindowScale); ok {\n\t\tw.Of = 0\n\t\tl = w\n\t}\n\treturn holding(l, in)"}}},
	{name: "a program in a thread of the plugin", file: "internal/pjrt/run.c", pkg: "internal/pjrt", test: "TestRunInline",
		edits: []edit{{"bool on_caller = mode == LAZO_RUN && run->devices == 1;", "bool on_caller = false;"}}},
	{name: "runs of more goroutines than processors", file: "xla/runner.go", pkg: "xla", test: "TestRun_ofManyGoroutines",
		edits: []edit{{"c.turns = e.of.turns", "c.turns = nil"}}},
	{name: "a prediction whose outputs are fetched apart", file: "managed/compile.go", pkg: "flaxlike", test: "TestAnswer_takesOneTurn",
		edits: []edit{{"if s.outputsAlone {", "if false {"}}},
	{name: "an exported model whose outputs are fetched apart", file: "xla/export/model.go", pkg: "xla/export", test: "TestModel_runsWithoutBuffers",
		edits: []edit{{"built.Read = append(built.Read, i)", "_ = i"}}},
	{name: "an exchange for each array", file: "internal/spmd/join.go", pkg: "managed/strategytest", test: "TestDataParallel_exchangesOnce",
		edits: []edit{{"n > 0 && n*types[element].bytes <= inPlaceAbove", "false && n > 0"}}},
	{name: "a finite check that each parameter's update computes again", file: "optim/finite.go", pkg: "optim", test: "TestSkipNonFinite_programGrowsWithParameters",
		edits: []edit{{"graph.LogicalAll(graph.OptimizationBarrier(graph.Stack(all, 0)))", "graph.LogicalAll(graph.Stack(all, 0))"}}},
	{name: "a step that copies its weights", file: "xla/executable.go", pkg: "xla", test: "TestCompile_copiesNoWeightOfALayer",
		edits: []edit{{"options.Debug[\"xla_cpu_copy_insertion_use_region_analysis\"] = true", "options.Debug[\"xla_cpu_copy_insertion_use_region_analysis\"] = false"}}},
	{name: "labels by the order of a folder's own classes", file: "data/images/images.go", pkg: "data/images", test: "TestOpen_classesOfAnotherFolder",
		edits: []edit{{"imageFile{name, int32(class)}", "imageFile{name, int32(len(f.files))}"}}},
	{name: "a folder of no class", file: "data/images/images.go", pkg: "data/images", test: "TestOpen_classesOfAnotherFolder",
		edits: []edit{{"if own {", "if own || !slices.Contains(f.format.Classes, c.Name()) {"}}},
	{name: "values of another series", file: "data/series/past.go", pkg: "data/series", test: "TestPast_fillsForward",
		edits: []edit{{"values[row] = values[g[i-1]]", "values[row] = values[row-1]"}}},
	{name: "a column of windows with an axis too many", file: "data/tables/preparation.go", pkg: "data/tables", test: "TestFit_columnsOfWindowsHaveTwoAxes",
		edits: []edit{{"len(a.Dims) > 2 {", "len(a.Dims) > 3 {"}}},
	{name: "a causal convolution that takes sequences for images", file: "nn/convolution.go", pkg: "flaxlike", test: "TestS36_imagesWithoutChannels",
		edits: []edit{{"d := x.Shape().Dimensions; !sequence && len(d) == 3", "d := x.Shape().Dimensions; len(d) == 3"}}},
	{name: "a maximum of masked places", file: "nn/shape.go", pkg: "nn", test: "TestPools_padding",
		edits: []edit{{"graph.MaskedReduceMax(x, counts, axes...)", "graph.ReduceMax(x, axes...)"}}},
	{name: "a cache that counts its folder for each runtime", file: "xla/cache.go", pkg: "xla", test: "TestCompileCache_countsItsFolderOnce",
		edits: []edit{{"opened.room = of.(*room)", "_, opened.room = of, new(room)"}}},
	{name: "padding of a resident set", file: "flaxlike/predict.go", pkg: "flaxlike", test: "TestSetWithMask_examplesCount",
		edits: []edit{{"mask, _ := batch.Field(data.Mask) // also of a Resident\n", "var mask data.Array\n\tfor _, f := range batch.Fields {\n\t\tif f.Name == data.Mask {\n\t\t\tmask = f.Array\n\t\t}\n\t}\n"}}},
	{name: "pictures by their own brightness", file: "flaxlike/report/samples.go", pkg: "flaxlike/report", test: "TestSamples_blackAndWhite",
		edits: []edit{{"return 0, 1\n", "return float32(low), float32(high)\n"}}},
	{name: "conditionals that their gradients build again", file: "internal/hlo/function.go", pkg: "internal/autodiff", test: "TestBranch_gradientOfNestedOnes",
		edits: []edit{{"lean.Inputs = []*value{s.Inputs[0], s.Inputs[1], s.Inputs[1]}", "lean.Inputs = s.Inputs"}}},
	{name: "results of a case that nothing uses", file: "internal/hlo/function.go", pkg: "internal/autodiff", test: "TestBranch_gradientOfNestedOnes",
		edits: []edit{{"return !used[v.String()] })\n\t\t}", "return false })\n\t\t}"}}},
	{name: "a kernel's gradient by YNNPACK", file: "internal/hlo/convolution.go", pkg: "internal/hlo", test: "TestConvGeneral_largeWindows",
		edits: []edit{{"f.b.cpu && plain && largeWindow(", "false && largeWindow("}}},
	{name: "labels by another set's numbers", file: "flaxlike/named.go", pkg: "flaxlike", test: "TestFit_namesClassesByItsSet",
		edits: []edit{{"numbers[i] = to[n]", "numbers[i] = int32(n)"}}},
	{name: "a trained model without the names of its set", file: "flaxlike/fit.go", pkg: "flaxlike", test: "TestFit_namesClassesByItsSet",
		edits: []edit{{"\tm.nameClasses(set)\n", ""}}},
	{name: "batches by another set's numbers", file: "flaxlike/enter.go", pkg: "flaxlike", test: "TestFit_namesClassesByItsSet",
		edits: []edit{{"named := labels && m.set.preparation == nil && m.classNames() != nil", "named := false"}}},
	{name: "names of classes that changed labels keep", file: "data/change.go", pkg: "data", test: "TestSet_classes",
		edits: []edit{{"= Field{Name: name, Array: a}", "= Field{name, a, field.Classes}"}}},
	{name: "a row of many columns that names none", file: "serve/rows.go", pkg: "serve", test: "TestRows",
		edits: []edit{{"if err != nil && len(row) == d.MaxMembers {", "if false {"}}},
	{name: "a window scaled back by another column", file: "nn/norm.go", pkg: "nn", test: "TestPeers",
		edits: []edit{{"graph.AxisElem(w.Of))", "graph.AxisElem(0))"}}},
	{name: "labels of windows without a hint", file: "data/tables/preparation.go", pkg: "data/tables", test: "TestFit_namesTheLabelsOfWindows",
		edits: []edit{{"next := \"next \" + name", "next := name + \" next\""}}},
	{name: "an image that is read as a table", file: "cmd/lazo/model_predict.go", pkg: "cmd/lazo", test: "TestModelPredict_image",
		edits: []edit{{"strings.ToLower(filepath.Ext(c.File))):\n", "c.File):\n"}}},
	{name: "a gradient by a constant that a branch has as its own", file: "internal/autodiff/gradient.go", pkg: "internal/autodiff", test: "TestGradient_byAConstant",
		edits: []edit{{"\trefuseConstants(loss, wrt)\n", ""}}},
	{name: "a row's parts that are not added", file: "internal/hlo/dot.go", pkg: "internal/hlo", test: "TestDotGeneral_oneRowByParts",
		edits: []edit{{"f.function(sums, v)", "f.function(maxima, v)"}}},
	{name: "a row's product on one thread", file: "internal/hlo/dot.go", pkg: "internal/hlo", test: "TestDotGeneral_oneRowByParts",
		edits: []edit{{"len(f.b.meshes) == 0 && parts > 1 {", "len(f.b.meshes) == 0 && parts > 99 {"}}},
	{name: "ratios to several commits in one line", file: "cmd/bench/history.go", pkg: "cmd/bench", test: "TestDrawHistory_ofTheNewestReference",
		edits: []edit{{"r.Reference != newest.Reference", "false"}}},
	{name: "a run that loses its records for an error", file: "cmd/bench/check.go", pkg: "cmd/bench", test: "TestCheck_keepsRecordsBeforeAnError",
		edits: []edit{{"return records, fmt.Errorf(\"%s %s", "return nil, fmt.Errorf(\"%s %s"}}},
	{name: "a slower program that ends well", file: "cmd/bench/check.go", pkg: "cmd/bench", test: "TestCheck_slower",
		edits: []edit{{"slices.ContainsFunc(records, record.slower)", "false"}}},
	{name: "a panel for each entry of an own collection", file: "metrics/plots/history.go", pkg: "metrics/plots", test: "TestHistory_ofOwnCollection",
		edits: []edit{{"case !slices.Contains(own, s.Collection):", "case false:"}}},
	{name: "a program that two goroutines compile", file: "xla/shared.go", pkg: "xla", test: "TestSharedPrograms_atOnce",
		edits: []edit{{"other := s.compiling[key]; other != nil;", "other := s.compiling[key]; false;"}}},
	{name: "compiled programs of one process", file: "xla/cache.go", pkg: "flaxlike", test: "TestFit_compilesEachProgramOnce",
		edits: []edit{{"cacheMagic, c.on, options, program)", "cacheMagic, fmt.Sprint(c.on, os.Getpid()), options, program)"}}},
	{name: "labels of a set on the device by another set's numbers", file: "data/set.go", pkg: "flaxlike", test: "TestFit_namesClassesByItsSet",
		edits: []edit{{"r != nil && r.Set != nil", "r != nil && r.Set == nil"}}},
	{name: "a mask of a set on the device with all its fields", file: "data/resident.go", pkg: "data", test: "TestResident_sameBatches",
		edits: []edit{{"if only == \"\" || only == f.Name {", "if true {"}}},
	{name: "a loop's gradient next to the values that it replaces", file: "internal/autodiff/loop_gradient.go", pkg: "cmd/bench", test: "TestFootprints",
		edits: []edit{{"back.Over = append(back.Over, places[i])", "back.Over = append(back.Over, places[i:i]...)"}}},
	{name: "a recurrent layer's sum of input and bias", file: "nn/recurrent.go", pkg: "cmd/bench", test: "TestFootprints",
		edits: []edit{{"in = autodiff.Instead(in, graph.Add(in, graph.ExpandAxes(added, 0)))", "in = graph.Add(in, graph.ExpandAxes(added, 0))\n\t\tin, added = autodiff.Instead(in, in), graph.ZerosLike(added)"}}},
	{name: "a gelu that keeps its tanh", file: "nn/activation.go", pkg: "cmd/bench", test: "TestFootprints",
		edits: []edit{{"x := graph.SchedulingBarrier(in[0], v) //", "x := in[0] //"}}},
	{name: "gelu by 1+erf", file: "nn/activation.go", pkg: "nn", test: "TestActivation_geluTail",
		edits: []edit{{"if x.DType() == dtypes.Float64 {", "if x.DType() != dtypes.Bool {"}}},
	{name: "gelu in bfloat16", file: "nn/activation.go", pkg: "nn", test: "TestActivation_geluTail",
		edits: []edit{{"wide := widened(x)", "wide := x"}}},
	{name: "gelu of integers in float32", file: "nn/norm.go", pkg: "nn", test: "TestActivation_geluOfIntegers",
		edits: []edit{{"if x.DType().IsFloat() && x.DType().Size() < 4 {\n\t\treturn graph.ConvertDType(x, dtypes.Float32)", "if x.DType().Size() < 4 {\n\t\treturn graph.ConvertDType(x, dtypes.Float32)"}}},
}
