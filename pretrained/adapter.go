package pretrained

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/internal/regular"
)

const (
	adapterFile    = "adapter_config.json"
	additionsFile  = "adapter_model.safetensors"
	adapterPrefix  = "base_model.model."
	baseLayer      = ".base_layer.weight" // of a module below an addition, or embeddings
	mostAdapter    = 1 << 20
	mostPatterns   = 1000
	mostExpression = 4000     // bytes
	mostPatterned  = 64 << 10 // bytes of a field's plain names; others may take long to match
	mostAdapterRow = 10       // errors in a message
)

// LoadAdapter returns the network with the additions of a folder of peft or [Network.SaveAdapter], as
// PeftModel.from_pretrained. They may be trained further. Unimplemented fields of adapter_config.json that would
// change numbers are errors, as are missing and further tensors. Files are untrusted.
func (n *Network) LoadAdapter(folder string) *Network {
	if n.err != nil {
		return n
	}
	tensors := map[string]stored{}
	c, err := readConfig(folder, adapterFile, mostAdapter)
	if err == nil {
		err = n.renamed()
	}
	if err == nil {
		err = readHeader(filepath.Join(folder, additionsFile), tensors)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("expected %s and %s, as by save_pretrained of peft: %w", adapterFile, additionsFile, err)
	}
	if err != nil {
		return n.adapted(&config{}, nil, fmt.Errorf("load the adapter %s: %w", folder, err))
	}
	with := n.adapted(c, tensors, nil)
	if with.err != nil {
		with.err = fmt.Errorf("pretrained: load the adapter %s: %w", folder, with.err)
	}
	return with
}

type parameters struct {
	all              bool     // dense layers
	targets          []string // nil for a regular expression
	target, excluded func(module string) bool
	modules          []string
	dropout          float64
	of               func(module string) (rank int, scale float64, err error)
}

// adapterFields have rules below, or no effect on numbers. Others must be empty.
var adapterFields = []string{"peft_type", "peft_version", "task_type", "base_model_name_or_path", "revision", "inference_mode", "auto_mapping", "r", "lora_alpha", "lora_dropout",
	"target_modules", "exclude_modules", "modules_to_save", "bias", "use_rslora", "rank_pattern", "alpha_pattern", "init_lora_weights", "fan_in_fan_out", "megatron_core", "qalora_group_size"}

func (c *config) adapter() (p parameters) {
	for _, name := range slices.Sorted(maps.Keys(c.fields)) {
		if !slices.Contains(adapterFields, name) {
			c.only(name, "false", "[]", "{}", `""`)
		}
	}
	if c.text("peft_type", "") != "LORA" {
		c.fail("peft_type", `"LORA": other kinds of adapters are not implemented`)
	}
	c.only("bias", `"none"`)
	c.only("init_lora_weights", "true", "false", `"gaussian"`)
	p.dropout = c.rate("lora_dropout", 0)
	rank, alpha, stabilized := c.size("r", 8), c.positive("lora_alpha", 8), c.flag("use_rslora", false)
	p.all = strings.EqualFold(c.optional("target_modules"), allLinear)
	p.targets, p.target = c.modules("target_modules")
	_, p.excluded = c.modules("exclude_modules")
	if p.modules = c.names("modules_to_save"); slices.Contains(p.modules, "") {
		c.fail("modules_to_save", "names that are not empty")
	}
	ranks, alphas := c.patterns("rank_pattern"), c.patterns("alpha_pattern")
	p.of = func(module string) (int, float64, error) {
		r, err := ranks(module, float64(rank))
		a, err2 := alphas(module, alpha)
		if err = errors.Join(err, err2); err == nil && r != math.Trunc(r) {
			err = fmt.Errorf("%s: the rank of %q is %v, expected a whole number", c.file, module, r)
		}
		if stabilized {
			return int(r), a / math.Sqrt(r), err
		}
		return int(r), a / r, err
	}
	return p
}

func (c *config) optional(name string) (text string) {
	if c.decode(name, &text) != nil {
		return ""
	}
	return text
}

func (c *config) modules(field string) (list []string, match func(module string) bool) {
	if text := c.optional(field); text != "" {
		of, err := expression("^(?:", text)
		if err != nil {
			c.fail(field, "a list of names, or a regular expression: %v", err)
			return nil, nil
		}
		return nil, of.MatchString
	}
	list = c.names(field)
	return list, func(module string) bool {
		return slices.ContainsFunc(list, func(name string) bool { return endsWith(module, name) })
	}
}

func (c *config) names(field string) []string {
	list, bytes := c.texts(field), 0
	for _, name := range list {
		bytes += len(name)
	}
	if len(list) > mostPatterns || bytes > mostPatterned {
		c.fail(field, "at most %d names, of %d bytes in all", mostPatterns, mostPatterned)
		return nil
	}
	return list
}

// pythonSyntax finds what Python and Go may understand differently. Counts, and classes of Unicode or of any case,
// could take much memory.
var pythonSyntax = regexp.MustCompile(`\\[^wWdDsSbB!-/:-@[-\x60{-~]|\(\?[^:P]|\{|\[:|[^\x00-\x7f]`)

var plainName = regexp.MustCompile(`^\^?(\w|\\?\.)*\$?$`)

func expression(before, text string) (*regexp.Regexp, error) {
	if len(text) > mostExpression {
		return nil, fmt.Errorf("it has %d bytes, expected at most %d", len(text), mostExpression)
	}
	if other := pythonSyntax.FindString(text); other != "" {
		return nil, fmt.Errorf("it has %q: counts, flags, classes by name and other characters than ASCII are not implemented", other)
	}
	if _, err := regexp.Compile(text); err != nil { // also of "a)|(b"
		return nil, err
	}
	return regexp.Compile(before + text + ")$")
}

func (c *config) patterns(field string) func(module string, standard float64) (float64, error) {
	var numbers map[string]float64
	expected := fmt.Sprintf("an object of at most %d numbers above 0, by modules' names of %d bytes and regular expressions of %d bytes in all", mostPatterns, mostPatterned, mostExpression)
	if c.has(field) && c.decode(field, &numbers) != nil || len(numbers) > mostPatterns {
		c.fail(field, "%s", expected)
		numbers = nil
	}
	of, bytes := map[*regexp.Regexp]float64{}, map[bool]int{}
	for key, x := range numbers {
		plain := plainName.MatchString(key)
		if bytes[plain] += len(key); bytes[true] > mostPatterned || bytes[false] > mostExpression {
			c.fail(field, "%s", expected)
			break
		}
		r, err := expression(`^(?:.*\.)?(?:`, key)
		if err == nil && !(x > 0 && x <= mostSize) {
			err = fmt.Errorf("the number is %v", x)
		}
		if err != nil {
			c.fail(field, "%s: %s: %v", expected, listed.Quoted(key), err)
			break
		}
		of[r] = x
	}
	return func(module string, standard float64) (float64, error) {
		found := math.NaN()
		for r, x := range of {
			if !r.MatchString(module) {
				continue
			}
			if found == found && found != x {
				return 0, fmt.Errorf("%s: %s has several numbers for %q, expected one", c.file, field, module)
			}
			found = x
		}
		if found == found {
			return found, nil
		}
		return standard, nil
	}
}

func (n *Network) takeAdapter(tensors map[string]stored, p parameters) error {
	var errs []error
	used := map[string]bool{}
	take := func(w *weight) {
		name := adapterPrefix + n.adapterName(*w)
		s, err := named(tensors, w.tensor, adapterFile, name)
		if err != nil {
			errs = append(errs, err)
			return
		}
		used[name], w.stored = true, s
	}
	for i := range n.adapter.weights {
		take(&n.adapter.weights[i])
	}
	for i := range n.weights {
		w := &n.weights[i]
		whole := adapterPrefix + moduleOf(n.savedName(*w)) + baseLayer
		if _, has := n.adapter.layers[strings.TrimSuffix(w.own, "/kernel")]; has && tensors[whole].rows != nil {
			s, err := named(tensors, w.tensor, adapterFile, whole)
			errs, used[whole], w.stored, w.packed = append(errs, err), true, s, false
		} else if wholeBy(moduleOf(n.savedName(*w)), p.modules) != "" {
			take(w)
		}
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		if !used[name] {
			errs = append(errs, fmt.Errorf("%s has the tensor %s, which is not of a module of target_modules and modules_to_save in this network: expected the adapter of a network %s",
				additionsFile, listed.Quoted(name), n.task))
		}
	}
	return errors.Join(errs[:min(len(errs), mostAdapterRow)]...)
}

// adapterName lacks adapters' prefix.
func (n *Network) adapterName(w weight) string {
	if strings.Contains(w.own, "/lora_") {
		return w.name
	}
	return n.savedName(w)
}

// SaveAdapter writes a folder that peft loads with PeftModel.from_pretrained: adapter_config.json and
// adapter_model.safetensors, with the additions and the modules trained themselves. It makes the folder, and replaces
// these files. Do not train the model meanwhile.
func (n *Network) SaveAdapter(folder string, model Values) error {
	err := n.err
	if err == nil && n.adapter == nil {
		err = errors.New("the network has no additions: make it with Network.LoRA or Network.LoadAdapter, or use Network.Save")
	}
	if err == nil {
		err = n.renamed()
	}
	if err == nil {
		err = n.saveAdapter(folder, model)
	}
	if err != nil {
		return fmt.Errorf("pretrained: save the adapter %s: %w", folder, err)
	}
	return nil
}

// renamed is the error of architectures for which peft has other names.
func (n *Network) renamed() error {
	if !n.family.renamed {
		return nil
	}
	return fmt.Errorf("adapters of %s are not implemented, as modules and files of transformers have different names: use Network.Save, which merges the additions", n.family.class)
}

func (n *Network) saveAdapter(folder string, model Values) error {
	if err := absent(folder, configFile, "transformers would add this adapter to the model there"); err != nil {
		return err
	}
	fields := maps.Clone(n.adapter.fields)
	base, err := json.Marshal(n.base.folder)
	if err != nil {
		return err
	}
	fields["base_model_name_or_path"], fields["inference_mode"] = base, json.RawMessage("true")
	config, err := indented(fields)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	to, err := fileDType(dtypes.Float32)
	if err != nil {
		return err
	}
	of := map[string]weight{}
	for _, w := range slices.Concat(n.adapter.weights, n.weights) {
		if n.adapter.trained[w.own] || strings.Contains(w.own, "/lora_") {
			of[adapterPrefix+n.adapterName(w)] = w
		} else if w.stored != nil && strings.HasSuffix(w.stored.Name, baseLayer) {
			of[w.stored.Name] = w
		}
	}
	apart := *n
	apart.adapter = nil
	if err := regular.Replace(filepath.Join(folder, additionsFile), func(f *os.File) error { return apart.write(f, of, to, model) }); err != nil {
		return err
	}
	return regular.Replace(filepath.Join(folder, adapterFile), func(f *os.File) error { _, err := f.Write(config); return err })
}

func (n *Network) merged(w weight, data []byte, dtype safetensors.DType, model Values) ([]byte, error) {
	own, err := fileDType(w.dtype)
	if err != nil {
		return nil, err
	}
	var l lowRank
	if n.adapter != nil {
		l = n.adapter.layers[strings.TrimSuffix(w.own, "/kernel")]
	}
	if l.rank == 0 || !strings.HasSuffix(w.own, "/kernel") {
		return converted(data, own, dtype)
	}
	scope := strings.TrimSuffix(w.variable(), "/kernel")
	var ab [2][]float32
	for i, name := range []string{"/lora_a/kernel", "/lora_b/kernel"} {
		value, err := model.Value(scope + name)
		if err != nil {
			return nil, err
		}
		shape := [][]int{{l.in, l.rank}, {l.rank, l.out}}[i]
		if got := value.Shape(); got.DType != dtypes.Float32 || !slices.Equal(got.Dimensions, shape) {
			return nil, fmt.Errorf("the variable %s is %s, expected (Float32)%v: is the model made of this network?", scope+name, got, shape)
		}
		inner := value.ConstBytes(func(b []byte) {
			var of []float32
			of, err = safetensors.Values[float32](b)
			ab[i] = slices.Clone(of)
		})
		if err := errors.Join(inner, err); err != nil {
			return nil, err
		}
	}
	wide, err := converted(data, own, safetensors.F32)
	if err != nil {
		return nil, err
	}
	kernel, err := safetensors.Values[float32](wide)
	if err != nil {
		return nil, err
	}
	sums, row := make([]float32, len(kernel)), make([]float64, l.out)
	for i := range l.in {
		clear(row)
		for k := range l.rank {
			a := float64(ab[0][i*l.rank+k])
			for j, b := range ab[1][k*l.out:][:l.out] {
				row[j] += a * float64(b)
			}
		}
		for j, x := range row {
			sums[i*l.out+j] = float32(float64(kernel[i*l.out+j]) + x*l.scale)
		}
	}
	return converted(safetensors.Bytes(sums), safetensors.F32, dtype)
}
