package archtest

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"iter"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/images"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/optim"
)

// keeps matches the words of a doc comment about a slice that is not copied.
var keeps = regexp.MustCompile(`(?i)\bkeeps?\b|\bkept\b|\bviews?\b`)

// handedOverByGoMLX are packages whose lists come from GoMLX's graphs or package xla and do not change.
var handedOverByGoMLX = map[string]string{}

// readAtOnce are functions that only use a list during the call, but that the test takes for keeping it.
var readAtOnce = map[string]bool{
	"checkpoint.UnmarshalJSON":     true,
	"checkpoint/safetensors.Write": true, "checkpoint/safetensors.ReadInto": true,
	"metrics.Update": true, "metrics.Compute": true,
	"flaxlike.Output": true, "flaxlike.Kind": true, "flaxlike.Probabilities": true, "flaxlike.Classes": true, "flaxlike.Labels": true, "flaxlike.ClassNames": true, // the name of an output
	"flaxlike/decision.FitTemperature": true, "flaxlike/decision.FitPlatt": true, // in functions that run at once
	"dist.Agree": true, "dist.AgreeOn": true, "dist.Broadcast": true, "dist.AllGather": true,
	"xla.Run": true, "xla.Start": true, // except a block's, which the doc mentions
}

// fills are functions whose purpose is to fill a caller's list.
var fills = map[string]bool{"checkpoint/safetensors.Sort": true, "data/text.Penalize": true, "dist.Agree": true, "dist.AgreeOn": true}

// A list argument is copied, or its doc says that it is kept: otherwise append(list, …) by the caller would change
// earlier results (R11). The test reads the source: a slice parameter may be read, copied and passed on, but not
// stored, returned, used in a function that runs later, or changed.
func TestR11_listsAreCopiedOrSaidToBeKept(t *testing.T) {
	functions, documented := 0, 0
	for _, p := range parsed(t) {
		if _, ok := handedOverByGoMLX[p.dir]; ok {
			continue
		}
		for _, f := range p.functions {
			if !exported(f) {
				continue
			}
			for _, name := range p.slicesOf(f.Type.Params) {
				functions++
				if at := writtenInto(f, name); at != token.NoPos && !fills[p.dir+"."+f.Name.Name] {
					t.Errorf("%s: %s writes into its parameter %s, which is the caller's: take slices.Clone of it", p.fset.Position(at), f.Name.Name, name)
				}
				where := p.stored(f, name, nil)
				if where == token.NoPos || readAtOnce[p.dir+"."+f.Name.Name] {
					continue
				}
				if keeps.MatchString(f.Doc.Text()) {
					documented++
					continue
				}
				t.Errorf("%s: %s keeps its parameter %s: take slices.Clone of it, or say in the doc that it is kept", p.fset.Position(where), f.Name.Name, name)
			}
		}
	}
	require.Greater(t, functions, 100)
	t.Logf("%d parameters that are lists; of %d the doc says that they are kept, the others are copied or only read", functions, documented)
}

// The treatment of each list in an exported struct that a caller fills in. A new one needs a row.
var fieldsThatAreLists = map[string]string{
	// Copied when the struct is passed.
	"checkpoint.Options.Keep": "copied", "flaxlike.Loss.Ignore": "copied", "optim.Group.Chain": "copied",
	// Used only during the call that takes the struct or has it as receiver.
	"checkpoint.Content.Tensors": "call", "checkpoint.Tensor.Dims": "call", "checkpoint.Tensor.Data": "call", "checkpoint.Tensor.Parts": "call", "strategies.Part.Start": "given", "checkpoint/safetensors.Tensor.Dims": "call",
	"flaxlike.Fit.ValidationAt": "call", "flaxlike/selection.Search.Space": "call", "flaxlike.Fit.Callbacks": "call", "flaxlike.Fit.Augment": "call", "data/tables.Scaling.Mean": "call", "data/tables.Scaling.Std": "call",
	"data/series.Windows.Columns": "call", "data/series.Windows.Targets": "call", "data/series.Past.Columns": "call", "data/series.Past.Lags": "call",
	"data/series.Past.Means": "call", "data/series.Past.Mins": "call", "data/series.Past.Maxs": "call", "data/series.Past.Stds": "call",
	"data/tables.Numbers.Columns": "call", "data/tables.Categories.Columns": "call", "data/tables.Categories.Classes": "call", "data/tables.Labels.Classes": "call", "data/tables.Labels.Columns": "call", "data/tables.Terms.Stop": "call",
	"data/tables.Numbers.Edges": "call", "data/tables.Dates.Columns": "call", "data/tables.Dates.Parts": "call", "data/tables.Hashed.Columns": "call", "data/tables.Crossed.Columns": "call", "data/tables.Function.Columns": "call",
	"loop.Evaluation.Options": "call", "loop.Callback.Needs": "call", "metrics.Entry.Inputs": "call", "strategies.Step.Batch": "call", "strategies.Built.State": "call", "strategies.Built.Read": "call",
	"strategies.Built.Outputs": "call", "callbacks/tensorboard.Audio.Samples": "call", "callbacks/tensorboard.Histogram.Buckets": "call",
	"train.Loop.Tests": "call", "train.Loop.Hooks": "call", "train.Loop.Tasks": "call", "train.Predict.Hooks": "call", "train.Predict.Tasks": "call",
	"xla.Mesh.Axes": "call", "xla.Built.Outputs": "call", "xla.Built.Host": "call", "xla.Built.Read": "call", "xla.Scan.Each": "call",
	"xla/plan.Step.Batch": "call", "xla/plan.Step.Inputs": "call",
	"data/text.BPETraining.Special": "call", "data/text.Vocabulary.Tokens": "call", "data/text.Vocabulary.Types": "call", "data/text.Vocabulary.Merges": "call",
	"data/text.Encoding.IDs": "given", "data/text.Encoding.Types": "given", "data/text.Encoding.Texts": "given", "data/text.Encoding.Offsets": "given", "metrics/plots.Classified.Classes": "call", "metrics/plots.Classified.Labels": "call", "metrics/plots.Classified.Scores": "call", "metrics/plots.Classified.Positive": "call",
	"metrics/plots.Regressed.True": "call", "metrics/plots.Regressed.Predicted": "call", "metrics/plots.Forecast.History": "call", "metrics/plots.Forecast.True": "call", "metrics/plots.Forecast.Predicted": "call",
	"metrics/plots.Weights.Values": "call", "metrics/plots.Block.From": "call", "metrics/plots.Block.Parts": "call", "metrics/plots.Report.Card": "call",
	"metrics/plots.Report.Figures": "call", "metrics/plots.Part.Rows": "call", "flaxlike/report.Run.Classes": "call",
	"nn.Conv.Window": "call", "nn.Conv.Strides": "call", "nn.Conv.Dilation": "call", "nn.DepthwiseConv.Window": "call", "nn.DepthwiseConv.Strides": "call",
	"nn.DepthwiseConv.Dilation": "call", "nn.SeparableConv.Window": "call", "nn.SeparableConv.Strides": "call", "nn.SeparableConv.Dilation": "call",
	"pretrained.Network.Labels": "given", "nn.ConvTranspose.Window": "call", "nn.ConvTranspose.Strides": "call", "nn.ConvTranspose.Dilation": "call", "nn.ConvTranspose.OutputPadding": "call", "flaxlike/selection.Parameter.Values": "call",
	"nn.Recurrent.Initial": "call", "nn.Attention.Rates": "call", "pretrained.Generation.Stop": "call", "pretrained.Hub.Files": "call", "nn.L1.Layers": "call", "nn.L2.Layers": "call", "nn.WindowScale.Layers": "call", "data/images.Format.Classes": "call", "dist/launch.Options.Command": "call",
	"dist/launch.Options.Env": "call", "pretrained.LoRA.Targets": "call", "pretrained.LoRA.Modules": "call", "pretrained.Generation.StopTexts": "call", "nn.Conv.Padding": "call", "pretrained/onnx.Options.Outputs": "copied",
	"pretrained/onnx.Network.Inputs": "given", "pretrained/onnx.Input.Dims": "given",
	"callbacks/mlflow.Run.Artifacts": "copied", "callbacks/mlflow.Signature.Inputs": "call", "callbacks/mlflow.Signature.Outputs": "call",
	"callbacks/mlflow.Tensor.Dims": "call",
	// Kept by a sequence or a set that is made from it, as its doc says.
	"data.Array.Dims": "kept", "data.Batch.Fields": "kept", "data/tables.Format.Fields": "kept", "data/tables.Format.Missing": "kept", "data/tables.Field.Columns": "kept",
	"data/tables.Field.Classes": "kept", "data/parquet.Format.Fields": "kept", "data/parquet.Field.Columns": "kept", "data/parquet.Field.Dims": "kept",
	"data/parquet.Field.Classes": "kept",
	// Returned by a function.
	"serve.Tensor.Dims": "given", "checkpoint.Checkpoint.Tensors": "given", "checkpoint.Checkpoint.PassedOver": "given", "data.Bucket.Items": "given", "data.Deal.Fields": "given", "data.Field.Classes": "kept", "flaxlike.Summary.Layers": "given", "flaxlike.Input.Dims": "given", "flaxlike.Card.Fields": "given",
	"flaxlike.Summary.Arrows": "given", "loop.Plan.Prepares": "given", "metrics/plots.Curve.X": "given", "metrics/plots.Curve.Y": "given",
	"data.Fold.TestRows": "given", "flaxlike/selection.CrossValidation.Figures": "given", "flaxlike/selection.Result.Trials": "given",
	"metrics/plots.Reliability.Probabilities": "given", "metrics/plots.Reliability.Shares": "given", "metrics/plots.Reliability.Counts": "given",
	"flaxlike.Copied.Taken": "given", "flaxlike.Copied.Left": "given", "flaxlike.Copied.Unused": "given", "flaxlike.Description.Network": "given", "flaxlike.Description.Outdated": "given",
	"pretrained.Description.Classes": "given", "pretrained.Description.Heads": "given", "pretrained.Description.DTypes": "given", "pretrained.Description.Labels": "given", "pretrained.Description.Pooling": "given", "pretrained.Description.Refused": "given", "flaxlike.Description.Inputs": "given", "flaxlike.Description.Losses": "given", "flaxlike.Description.Metrics": "given", "flaxlike.Description.Variables": "given",
	"loop.Plan.Entries": "given", "loop.Beginning.Prepared": "given", "callbacks/board.Options.Hosts": "copied", "callbacks.Bar.Below": "copied", "callbacks.Bar.Shows": "copied", "callbacks.Notification.Command": "copied", "callbacks.Recovery.Entries": "copied", "callbacks.Timing.Parts": "given", "callbacks.Timing.Stages": "given",
	"managed.ExportOptions.Sizes": "call", "managed.MismatchError.Mismatches": "given", "managed.Summary.Rows": "given",
	"xla.NotFiniteError.Operands": "given", "xla.NotFiniteError.From": "given", "xla.Error.Operands": "given",
	"xla/export.Value.Fields": "given", "xla/cost.Counts.Exchanged": "given", "xla/cost.Counts.Largest": "given", "xla/cost.Counts.Uncounted": "given", "xla/cost.Counts.Unknown": "given",
	"xla.Cost.Uncounted": "given", "xla.Cost.Unknown": "given",
	"xla/plan.Estimate.Missing": "given", "xla/plan.Target.Grid": "given",
	"xla/export.Program.Inputs": "given", "xla/export.Program.Outputs": "given",
}

func TestR11_listsInStructs(t *testing.T) {
	found := map[string]bool{}
	for _, p := range parsed(t) {
		if _, ok := handedOverByGoMLX[p.dir]; ok {
			continue
		}
		for name, of := range p.types {
			s, ok := of.(*ast.StructType)
			if !ok || !ast.IsExported(name) {
				continue
			}
			for _, f := range s.Fields.List {
				for _, field := range f.Names {
					if p.isList(f.Type) && field.IsExported() {
						full := p.dir + "." + name + "." + field.Name
						require.Contains(t, fieldsThatAreLists, full, "say what becomes of it")
						found[full] = true
					}
				}
			}
		}
	}
	for name := range fieldsThatAreLists {
		require.True(t, found[name], "%s is not there", name)
	}
	t.Logf("%d fields that are lists", len(found))
}

// source is a package.
type source struct {
	dir       string
	fset      *token.FileSet
	files     []*ast.File
	functions []*ast.FuncDecl
	types     map[string]ast.Expr
	lists     map[string]bool // all packages' types that are slices: "optim.Chain"
}

// parsed returns the library's packages, without programs and internal packages.
func parsed(t *testing.T) (all []*source) {
	t.Helper()
	byDir, lists := map[string]*source{}, map[string]bool{}
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() {
			if path != "../.." && (strings.HasPrefix(name, ".") || slices.Contains([]string{"internal", "examples", "cmd", "testdata", "docs"}, name)) {
				return filepath.SkipDir
			}
			return nil
		} else if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		p := byDir[dir]
		if p == nil {
			p = &source{dir: strings.TrimPrefix(dir, "../../"), fset: token.NewFileSet(), types: map[string]ast.Expr{}, lists: lists}
			byDir[dir] = p
		}
		file, err := parser.ParseFile(p.fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.files = append(p.files, file)
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				p.functions = append(p.functions, d)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok {
						p.types[s.Name.Name] = s.Type
						if a, ok := s.Type.(*ast.ArrayType); ok && a.Len == nil {
							lists[filepath.Base(dir)+"."+s.Name.Name] = true
						}
					}
				}
			}
		}
		return nil
	}))
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		all = append(all, byDir[dir])
	}
	return all
}

// exported reports whether another package can call the function.
func exported(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return f.Name.IsExported()
	}
	receiver, _, _ := strings.Cut(strings.TrimLeft(types.ExprString(f.Recv.List[0].Type), "*"), "[")
	return f.Name.IsExported() && ast.IsExported(receiver)
}

func (p *source) isList(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ellipsis:
		return true
	case *ast.ArrayType:
		return e.Len == nil
	case *ast.Ident:
		return p.lists[filepath.Base(p.dir)+"."+e.Name]
	case *ast.SelectorExpr:
		return p.lists[types.ExprString(e)]
	}
	return false
}

func (p *source) slicesOf(fields *ast.FieldList) (names []string) {
	for _, f := range fields.List {
		for _, name := range f.Names {
			if p.isList(f.Type) && name.Name != "_" {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

// clones reports whether a statement replaces a parameter by a copy: name = slices.Clone(name).
func clones(s ast.Node, name string) bool {
	a, ok := s.(*ast.AssignStmt)
	return ok && len(a.Lhs) == 1 && types.ExprString(a.Lhs[0]) == name && types.ExprString(a.Rhs[0]) == "slices.Clone("+name+")"
}

// inPlace matches functions that change the elements of their first argument.
var inPlace = regexp.MustCompile(`^(copy|clear|slices\.(Sort|Reverse|Compact|Delete|Replace|Insert)\w*|sort\.\w+|rand\.Shuffle)$`)

// writtenInto returns where a function changes elements of a parameter before replacing it by a copy, or no position.
func writtenInto(f *ast.FuncDecl, name string) (where token.Pos) {
	if f.Body == nil {
		return token.NoPos
	}
	element := func(e ast.Expr) bool { // name[i], name[i:j], name[i].field
		for {
			switch at := e.(type) {
			case *ast.IndexExpr:
				e = at.X
			case *ast.SliceExpr:
				e = at.X
			case *ast.SelectorExpr:
				e = at.X
			case *ast.Ident:
				return at.Name == name
			default:
				return false
			}
		}
	}
	copied := false // the rest uses a copy
	ast.Inspect(f.Body, func(n ast.Node) bool {
		var changed []ast.Expr
		if copied = copied || clones(n, name); copied {
			return false
		}
		switch n := n.(type) {
		case *ast.AssignStmt:
			changed = n.Lhs
		case *ast.IncDecStmt:
			changed = []ast.Expr{n.X}
		case *ast.CallExpr:
			if inPlace.MatchString(types.ExprString(n.Fun)) && len(n.Args) > 0 && element(n.Args[0]) {
				where = n.Pos()
			}
		}
		for _, e := range changed {
			if _, whole := e.(*ast.Ident); !whole && element(e) {
				where = e.Pos()
			}
		}
		return where == token.NoPos
	})
	return where
}

// The control: a write into a caller's list is found, and a change of a copy is not.
func TestR11_writesAreFound(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "", `package p
func found1(list []int) { list[0] = 1 }
func found2(list ...T) { for i := range list { list[i].field++ } }
func found3(list []int) { f := func() { slices.Sort(list[1:]) }; f() }
func found4(list []int) { copy(list, other); list = slices.Clone(list) }
func fine1(list []int) { list = slices.Clone(list); list[0] = 1 }
func fine2(list []int) { other[0], list = list[0], nil; copy(other, list) }
`, 0)
	require.NoError(t, err)
	for _, d := range file.Decls {
		f := d.(*ast.FuncDecl)
		require.Equal(t, strings.HasPrefix(f.Name.Name, "found"), writtenInto(f, "list") != token.NoPos, f.Name.Name)
	}
}

// stored returns where a function keeps a parameter, or no position.
func (p *source) stored(f *ast.FuncDecl, name string, above []*ast.FuncDecl) (where token.Pos) {
	if f.Body == nil || slices.Contains(above, f) {
		return token.NoPos
	}
	if slices.ContainsFunc(f.Body.List, func(s ast.Stmt) bool { return clones(s, name) }) {
		return token.NoPos
	}
	var path []ast.Node
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if n == nil {
			path = path[:len(path)-1]
			return true
		}
		path = append(path, n)
		if id, ok := n.(*ast.Ident); ok && id.Name == name && where == token.NoPos && p.keepsIt(path, append(above, f)) {
			where = id.Pos()
		}
		return true
	})
	return where
}

// keepsIt reports whether a parameter, the last node of the path, is kept there.
func (p *source) keepsIt(path []ast.Node, above []*ast.FuncDecl) bool {
	at := func(i int) ast.Node { return path[max(0, len(path)-i)] }
	switch parent := at(2).(type) {
	case *ast.SelectorExpr:
		if parent.Sel == at(1) {
			return false // a field of that name
		}
	case *ast.KeyValueExpr:
		if parent.Key == at(1) {
			return false
		}
	}
	for i := len(path) - 1; i > 0; i-- { // in a function that may run later?
		if f, ok := path[i].(*ast.FuncLit); ok {
			call, _ := path[i-1].(*ast.CallExpr)
			if call == nil || call.Fun != f && !regexp.MustCompile(`^(slices|sort|maps|graphs|iter)\.`).MatchString(types.ExprString(call.Fun)) {
				return true
			}
		}
	}
	for i := len(path) - 1; i > 0; i-- {
		child := path[i]
		switch parent := path[i-1].(type) {
		case *ast.ParenExpr:
		case *ast.SliceExpr:
			if parent.X != child {
				return false
			}
		case *ast.CallExpr:
			arg := slices.IndexFunc(parent.Args, func(a ast.Expr) bool { return a == child })
			fun := types.ExprString(parent.Fun)
			switch _, conversion := p.types[fun]; {
			case arg < 0:
				return false
			case conversion || strings.HasPrefix(fun, "[]"):
				continue // still the same list
			case fun == "append" && arg == 0: // may write after the end of the caller's list
				cut, ok := child.(*ast.SliceExpr)
				return !ok || !cut.Slice3
			}
			return p.callee(parent, arg, above)
		case *ast.CompositeLit, *ast.KeyValueExpr, *ast.ReturnStmt, *ast.SendStmt, *ast.UnaryExpr:
			return true
		case *ast.AssignStmt:
			i := slices.IndexFunc(parent.Rhs, func(e ast.Expr) bool { return e == child })
			itself := i >= 0 && len(parent.Lhs) == len(parent.Rhs) && types.ExprString(parent.Lhs[i]) == types.ExprString(path[len(path)-1].(ast.Expr))
			return i >= 0 && !itself
		default:
			return false
		}
	}
	return false
}

// callee reports whether a function of the package keeps its argument. Those of other packages are checked there.
func (p *source) callee(call *ast.CallExpr, arg int, above []*ast.FuncDecl) bool {
	var name string
	method := false
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		name = fun.Name
	case *ast.SelectorExpr: // a method of the same receiver
		f := above[len(above)-1]
		if f.Recv == nil || len(f.Recv.List[0].Names) == 0 || types.ExprString(fun.X) != f.Recv.List[0].Names[0].Name {
			return false
		}
		name, method = fun.Sel.Name, true
	case *ast.IndexExpr:
		name = types.ExprString(fun.X)
	}
	for _, f := range p.functions {
		if f.Name.Name != name || (f.Recv != nil) != method {
			continue
		}
		var names []string
		for _, field := range f.Type.Params.List {
			for _, n := range field.Names {
				names = append(names, n.Name)
			}
		}
		if len(names) > 0 && p.stored(f, names[min(arg, len(names)-1)], above) != token.NoPos {
			return true
		}
	}
	return false
}

// A caller's later changes of a list have no effect.
func TestR11_laterChangesAreNotSeen(t *testing.T) {
	chain := append(make([]optim.Transformation, 0, 4), optim.ScaleBySchedule(optim.Constant(0.5)))
	optimizer := optim.New(1, chain...)
	changes := []images.Augmentation{images.RandomCrop(1, 1, 0)}
	augment := images.Augment(1, "x", changes...)
	sources := []iter.Seq2[int, error]{data.Items([]int{1}), data.Items([]int{2})}
	interleaved := data.Interleave(1, sources...)
	watched := ""
	watch := func(name string) loop.Option {
		return loop.Watch(loop.AtEnd, func(context.Context, loop.Report) error { watched += name; return nil })
	}
	options := []loop.Option{watch("first")}
	after := loop.Options(options...)
	rules := []checkpoint.Retention{{Last: 3}}
	folder, err := checkpoint.Open(t.TempDir(), checkpoint.Options{Keep: rules})
	require.NoError(t, err)
	defer folder.Close()

	chain[0], changes[0] = optim.ScaleBySchedule(optim.Constant(7)), images.RandomCrop(9, 9, 0)
	sources[0], options[0], rules[0].Last = data.Items([]int{7}), watch("other"), 1

	require.Equal(t, 0.5, optimizer.RateAt(0))
	_, err = augment(data.Batch{Size: 1, Fields: []data.Field{data.X([]float32{1, 2, 3, 4}, 1, 2, 2, 1)}})
	require.NoError(t, err)
	first, err := data.Peek(interleaved)
	require.NoError(t, err)
	require.Equal(t, 1, first)
	_, err = loop.New[int, int]().Run(t.Context(), 0, loop.Data[int](data.Items([]int{1})), after)
	require.NoError(t, err)
	require.Equal(t, "first", watched)
	for step := range checkpoint.Step(3) {
		require.NoError(t, folder.Save(t.Context(), step, checkpoint.Content{}))
	}
	list, err := folder.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 3)
}
