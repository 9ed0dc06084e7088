package cost

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/internal/brackets"
)

// Axis is a mesh axis over which a program is partitioned, like "data", and its number of devices. The last varies
// fastest.
type Axis struct {
	Name string
	Size int
}

var collectives = map[string]bool{
	"all-reduce": true, "reduce-scatter": true, "all-gather": true, "all-to-all": true, "ragged-all-to-all": true, "collective-permute": true,
	"collective-broadcast": true,
}

type exchangeKey struct {
	kind  string
	axes  string // mesh axes, joined by ",", or ""
	group int
}

// An all-reduce fused with a slice is a reduce-scatter.
func (c *counter) exchange(t *tally, of *computation, i *instruction, kind string) error {
	if divided(i) && !c.begins[of] && c.first[i.attributes["channel_id"]] != of {
		return nil
	}
	if kind == "all-reduce" && strings.HasPrefix(of.name, "all-reduce-scatter") {
		kind = "reduce-scatter"
	}
	group, axes, err := c.groups(i, kind)
	if err != nil {
		return fmt.Errorf("instruction %q (line %d): %w", i.name, i.line, err)
	}
	var bytes float64
	for n, o := range i.operands {
		if kind == "ragged-all-to-all" && n > 0 { // the others are offsets and sizes
			break
		}
		bytes += o.shape.bytes()
	}
	t.exchanges[exchangeKey{kind, axes, group}] += bytes
	return nil
}

// asynchronous finds the collectives that count. TPU's compiler copies an overlapped collective into several fusions:
// the copy with "AsyncCollectiveStart" counts, or else the channel's first.
func (c *counter) asynchronous() {
	c.begins, c.first = map[*computation]bool{}, map[string]*computation{}
	started := map[string]bool{}
	for _, f := range c.m.order {
		for _, i := range f.instructions {
			if strings.Contains(i.attributes["custom_call_target"], "AsyncCollectiveStart") {
				c.begins[f] = true
			}
		}
		for _, i := range f.instructions {
			if channel := i.attributes["channel_id"]; divided(i) && c.begins[f] {
				started[channel] = true
			} else if divided(i) && c.first[channel] == nil {
				c.first[channel] = f
			}
		}
	}
	for channel := range started {
		delete(c.first, channel)
	}
}

func divided(i *instruction) bool {
	return collectives[i.opcode] && i.attributes["channel_id"] != "" && strings.Contains(i.attributes["backend_config"], "async_collective_fusion_config")
}

var (
	iotaGroups = regexp.MustCompile(`^\[(\d+),(\d+)\]<=\[([0-9,]+)\](?:T\(([0-9,]+)\))?$`)
	meshGroups = regexp.MustCompile(`^@?\w*\[([^\]]*)\](?:, *device_ids=\(([^{}]*)\))? *\{([^}]*)\}$`)
	meshOrder  = regexp.MustCompile(`^\[([0-9,]+)\](?:T\(([0-9,]+)\))?$`)
)

const maxDevices = 1 << 20

func (c *counter) groups(i *instruction, kind string) (size int, axes string, err error) {
	all := c.m.partitions * c.m.replicas
	if kind == "collective-permute" {
		pairs, err := lists(i.attributes["source_target_pairs"])
		if err != nil {
			return 0, "", err
		}
		return 2, c.pairAxes(pairs), nil
	}
	text := i.attributes["replica_groups"]
	if devices := i.attributes["device_ids"]; devices != "" { // parsed as an attribute, after a comma
		text += ", device_ids=" + devices
	}
	if text == "" || text == "{}" {
		return all, c.along([][]int{count(all)}), nil
	}
	var found [][]int
	if m := iotaGroups.FindStringSubmatch(text); m != nil {
		found, err = iota(m)
	} else if m := meshGroups.FindStringSubmatch(text); m != nil {
		found, err = named(m[1], m[2], m[3])
	} else {
		found, err = lists(text)
	}
	if err == nil && len(found) == 0 {
		err = errors.New("there is none")
	}
	if err != nil {
		return 0, "", fmt.Errorf("replica_groups=%.80s: expected groups of devices: %w", text, err)
	}
	for _, g := range found {
		size = max(size, len(g))
	}
	return size, c.along(found), nil
}

func count(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// lists parses "{{0,1},{2,3}}".
func lists(text string) ([][]int, error) {
	parts, err := brackets.Split(strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}"))
	if err != nil {
		return nil, err
	}
	var all [][]int
	for _, p := range parts {
		if !strings.HasPrefix(p, "{") {
			return nil, fmt.Errorf("%.40q: expected lists of devices", text)
		}
		list, err := brackets.Numbers(p)
		if err != nil {
			return nil, err
		}
		all = append(all, list)
	}
	return all, nil
}

// "[groups,size]<=[dims]T(order)", a transposed array of devices in rows
func iota(m []string) ([][]int, error) {
	groups, err := strconv.Atoi(m[1])
	if err != nil {
		return nil, err
	}
	size, err := strconv.Atoi(m[2])
	if err != nil {
		return nil, err
	}
	flat, err := ordered(m[3], m[4])
	if err != nil {
		return nil, err
	}
	if groups < 1 || size < 1 || groups > maxDevices || size > maxDevices || groups*size != len(flat) {
		return nil, fmt.Errorf("%d groups of %d of %d devices", groups, size, len(flat))
	}
	return slices.Collect(slices.Chunk(flat, size)), nil
}

// ordered parses dims, "4,2", and an order of axes, "1,0" or "".
func ordered(of, as string) ([]int, error) {
	dims, err := brackets.Numbers(of)
	if err != nil {
		return nil, err
	}
	order := count(len(dims))
	if as != "" {
		if order, err = brackets.Numbers(as); err != nil {
			return nil, err
		}
	}
	n := 1
	for _, d := range dims {
		if d < 1 || d > maxDevices || n > maxDevices/d {
			return nil, fmt.Errorf("more than %d devices", maxDevices)
		}
		n *= d
	}
	return transposed(dims, order)
}

func transposed(dims, order []int) ([]int, error) {
	if len(order) != len(dims) {
		return nil, fmt.Errorf("%d axes in the order %v", len(dims), order)
	}
	strides, n := make([]int, len(dims)), 1
	for i := len(dims) - 1; i >= 0; i-- {
		strides[i] = n
		n *= dims[i]
	}
	flat, used := []int{0}, make([]bool, len(dims))
	for _, axis := range order {
		if axis >= len(dims) || used[axis] {
			return nil, fmt.Errorf("%d axes in the order %v", len(dims), order)
		}
		used[axis] = true
		next := make([]int, 0, len(flat)*dims[axis])
		for _, at := range flat {
			for k := range dims[axis] {
				next = append(next, at+k*strides[axis])
			}
		}
		flat = next
	}
	return flat, nil
}

var meshAxis = regexp.MustCompile(`^'?([^'=]+)'?=(\d+)$`)

// Groups along a mesh's axes, "mesh['a'=2,'b'=4] {'b'}", whose devices "device_ids=([4,2]T(1,0))" or
// "device_ids=(0,2,1,3)" renumbers.
func named(mesh, devices, along string) ([][]int, error) {
	var dims []int
	places := map[string]int{}
	parts, err := brackets.Split(mesh)
	if err != nil {
		return nil, err
	}
	n := 1
	for _, p := range parts {
		m := meshAxis.FindStringSubmatch(p)
		if m == nil {
			return nil, fmt.Errorf("an axis %q", p)
		}
		d, err := strconv.Atoi(m[2])
		if err != nil || d < 1 || d > maxDevices || n > maxDevices/d {
			return nil, fmt.Errorf("an axis %q", p)
		}
		n *= d
		places[m[1]] = len(dims)
		dims = append(dims, d)
	}
	var order []int
	size := 1
	parts, err = brackets.Split(along)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		at, found := places[strings.Trim(p, "' ")]
		if !found || slices.Contains(order, at) {
			return nil, fmt.Errorf("groups along %q of a mesh %s", p, mesh)
		}
		order = append(order, at)
		size *= dims[at]
	}
	for axis := range dims {
		if !slices.Contains(order[max(0, len(order)-len(parts)):], axis) {
			order = slices.Insert(order, len(order)-len(parts), axis)
		}
	}
	flat, err := transposed(dims, order)
	if err != nil || devices == "" {
		return slices.Collect(slices.Chunk(flat, size)), err
	}
	ids, err := brackets.Numbers(devices)
	if m := meshOrder.FindStringSubmatch(devices); m != nil {
		ids, err = ordered(m[1], m[2])
	}
	if err == nil && len(ids) != n {
		err = fmt.Errorf("there are %d", len(ids))
	}
	if err != nil {
		return nil, fmt.Errorf("device_ids=(%.60s) of a mesh of %d: expected as many devices: %w", devices, n, err)
	}
	for i, place := range flat {
		flat[i] = ids[place]
	}
	return slices.Collect(slices.Chunk(flat, size)), nil
}

func (c *counter) along(groups [][]int) string {
	want := normal(groups)
	for subset := 1; subset < 1<<min(len(c.mesh), 10); subset++ {
		var names []string
		var inside, outside, dims []int
		n := 1
		for i, a := range c.mesh {
			dims = append(dims, a.Size)
			n *= a.Size
			if subset>>i&1 == 1 {
				names, inside = append(names, a.Name), append(inside, i)
			} else {
				outside = append(outside, i)
			}
		}
		if n > maxDevices {
			return ""
		}
		size := 1
		for _, i := range inside {
			size *= dims[i]
		}
		if size < 2 && n > 1 {
			continue
		}
		flat, err := transposed(dims, append(outside, inside...))
		if err != nil {
			return ""
		}
		if slices.EqualFunc(want, normal(slices.Collect(slices.Chunk(flat, size))), slices.Equal[[]int]) {
			return strings.Join(names, ",")
		}
	}
	return ""
}

// The order of groups has no meaning.
func normal(groups [][]int) [][]int {
	all := make([][]int, len(groups))
	for i, g := range groups {
		all[i] = slices.Sorted(slices.Values(g))
	}
	slices.SortFunc(all, slices.Compare[[]int])
	return all
}

func (c *counter) pairAxes(pairs [][]int) string {
	differ := make([]bool, len(c.mesh))
	for _, p := range pairs {
		if len(p) != 2 {
			return ""
		}
		a, b := p[0], p[1]
		for i, axis := range slices.Backward(c.mesh) {
			if axis.Size < 1 {
				return ""
			}
			if a%axis.Size != b%axis.Size {
				differ[i] = true
			}
			a, b = a/axis.Size, b/axis.Size
		}
	}
	var names []string
	for i, d := range differ {
		if d {
			names = append(names, c.mesh[i].Name)
		}
	}
	return strings.Join(names, ",")
}

func (k exchangeKey) sent(bytes float64) float64 {
	n := float64(k.group)
	switch {
	case n <= 1:
		return 0
	case k.kind == "all-reduce":
		return 2 * (n - 1) / n * bytes
	case k.kind == "reduce-scatter", k.kind == "all-to-all", k.kind == "ragged-all-to-all":
		return (n - 1) / n * bytes
	case k.kind == "all-gather":
		return (n - 1) * bytes
	}
	return bytes
}
