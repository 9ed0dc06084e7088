package cost

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/internal/brackets"
)

// Limits far above XLA's text for the largest models.
const (
	maxText     = 1 << 30 // bytes
	maxDepth    = 64      // of nested tuples
	maxElements = 1 << 50 // of an array
)

type module struct {
	name         string
	partitions   int
	replicas     int
	computations map[string]*computation
	order        []*computation
	entry        *computation
	aliased      map[int]int // leaf of the result → parameter whose memory it shares
	places       places
}

// A scheduled module's instructions are in execution order.
type computation struct {
	name         string
	line         int
	instructions []*instruction
	named        map[string]*instruction
	parameters   []*instruction
	root         *instruction
}

type instruction struct {
	name, opcode string
	shape        shape
	operands     []*instruction
	literal      string
	number       int
	attributes   map[string]string
	line         int
}

func read(text string) (*module, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("line 1: %d bytes of HLO, expected at most %d", len(text), maxText)
	}
	r := &reader{text: text, m: &module{partitions: 1, replicas: 1, computations: map[string]*computation{}, places: newPlaces()}}
	if err := r.all(); err != nil {
		return nil, fmt.Errorf("line %d: %w", max(r.line, 1), err)
	}
	return r.m, nil
}

type reader struct {
	text string
	at   int
	line int // of the last statement
	next int // lines before at
	m    *module
}

// whole: it continues to the closing bracket
func (r *reader) statement(whole bool) (string, bool) {
	if r.at >= len(r.text) {
		return "", false
	}
	r.line = r.next + 1
	start, at := r.at, brackets.Nesting{}
	for i := start; i < len(r.text); i++ {
		if r.text[i] == '\n' {
			r.next++
			if !whole || at.Depth <= 0 && !at.Quoted {
				r.at = i + 1
				return strings.TrimSpace(r.text[start:i]), true
			}
		}
		at.Read(r.text[i])
	}
	r.at = len(r.text)
	return strings.TrimSpace(r.text[start:]), true
}

func (r *reader) all() error {
	head, found := r.statement(false)
	for found && head == "" {
		head, found = r.statement(false)
	}
	if !strings.HasPrefix(head, "HloModule ") {
		return fmt.Errorf("it begins with %.40q: expected HLO as XLA writes it, which begins with \"HloModule\"", head)
	}
	if err := r.header(strings.TrimPrefix(head, "HloModule ")); err != nil {
		return err
	}
	for {
		line, found := r.statement(false)
		switch {
		case !found:
			return r.resolve()
		case line == "" || strings.HasPrefix(line, "//") || strings.HasPrefix(line, "#"):
		case sections[line]:
			if err := r.table(line); err != nil {
				return err
			}
		case strings.HasSuffix(line, "{"):
			if err := r.computation(line); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%.60q: expected the beginning of a computation", line)
		}
	}
}

func (r *reader) header(text string) error {
	parts, err := brackets.Split(text)
	if err != nil {
		return err
	}
	r.m.name = parts[0]
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "num_partitions", "replica_count":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || n > 1<<20 {
				return fmt.Errorf("%s: expected a number of devices", part)
			}
			if key == "num_partitions" {
				r.m.partitions = n
			} else {
				r.m.replicas = n
			}
		case "input_output_alias":
			if r.m.aliased, err = aliases(value); err != nil {
				return err
			}
		}
	}
	return nil
}

var aliasPattern = regexp.MustCompile(`\{([0-9, ]*)\}: *\((\d+), *\{([0-9, ]*)\}`)

// "{ {0}: (3, {}, may-alias), ... }". Values of nested tuples, which lazo does not write, count twice.
func aliases(text string) (map[int]int, error) {
	found := map[int]int{}
	for _, part := range aliasPattern.FindAllStringSubmatch(text, -1) {
		output, parameter := 0, 0
		var err error
		if part[1] != "" {
			if output, err = strconv.Atoi(part[1]); err != nil {
				continue
			}
		}
		if parameter, err = strconv.Atoi(part[2]); err != nil {
			return nil, err
		}
		if part[3] == "" {
			found[output] = parameter
		}
	}
	return found, nil
}

func (r *reader) computation(line string) error {
	entry := strings.HasPrefix(line, "ENTRY ")
	name := strings.TrimPrefix(line, "ENTRY ")
	if end := strings.IndexAny(name, " ("); end >= 0 {
		name = name[:end]
	}
	name = strings.TrimPrefix(name, "%")
	c := &computation{name: name, line: r.line, named: map[string]*instruction{}}
	if name == "" || r.m.computations[name] != nil {
		return fmt.Errorf("a computation %q: expected a name that no other computation has", name)
	}
	r.m.computations[name] = c
	r.m.order = append(r.m.order, c)
	if entry {
		if r.m.entry != nil {
			return errors.New("a second entry computation")
		}
		r.m.entry = c
	}
	operands := map[*instruction][]string{}
	for {
		if rest := strings.TrimLeft(r.text[r.at:], " \t"); strings.HasPrefix(rest, "}") {
			r.statement(false)
			break
		}
		line, found := r.statement(true)
		if !found {
			return fmt.Errorf("computation %q has no end", name)
		}
		if line == "" || strings.HasPrefix(line, "//") {
			continue
		}
		if err := c.add(line, r.line, operands); err != nil {
			return err
		}
	}
	return c.finish(operands)
}

var comments = regexp.MustCompile(`/\*[^*]*\*/`)

// add parses "[ROOT] %name = shape opcode(operands), attributes".
func (c *computation) add(text string, line int, operands map[*instruction][]string) error {
	if strings.Contains(text, "/*") {
		text = comments.ReplaceAllString(text, "")
	}
	text, root := strings.CutPrefix(text, "ROOT ")
	name, rest, found := strings.Cut(text, " = ")
	name = strings.TrimPrefix(strings.TrimSpace(name), "%")
	if !found || name == "" || strings.ContainsAny(name, " \t(){}[],\"") {
		return fmt.Errorf("%.60q: expected an instruction, \"name = shape operation(operands)\"", text)
	}
	if c.named[name] != nil {
		return fmt.Errorf("a second instruction %q", name)
	}
	s := &scanner{text: strings.TrimLeft(rest, " ")}
	i := &instruction{name: name, line: line}
	var err error
	if i.shape, err = s.shape(0); err != nil {
		return fmt.Errorf("instruction %q: %w", name, err)
	}
	rest = strings.TrimLeft(s.text[s.at:], " ")
	opened := strings.IndexByte(rest, '(')
	if opened < 1 {
		return fmt.Errorf("instruction %q: %.60q: expected an operation with its operands in brackets", name, rest)
	}
	i.opcode = strings.TrimSpace(rest[:opened])
	end, err := brackets.Closing(rest, opened)
	if err != nil {
		return fmt.Errorf("instruction %q: %w", name, err)
	}
	inside := rest[opened+1 : end]
	switch i.opcode {
	case "constant":
		i.literal = strings.TrimSpace(inside)
	case "parameter":
		if i.number, err = strconv.Atoi(strings.TrimSpace(inside)); err != nil || i.number < 0 {
			return fmt.Errorf("instruction %q: parameter %q: expected its number", name, inside)
		}
		c.parameters = append(c.parameters, i)
	default:
		parts, err := brackets.Split(inside)
		if err != nil {
			return fmt.Errorf("instruction %q: %w", name, err)
		}
		for _, p := range parts {
			if p == "" {
				continue
			}
			if space := strings.LastIndexByte(p, ' '); space >= 0 { // after its shape
				p = p[space+1:]
			}
			operands[i] = append(operands[i], strings.TrimPrefix(p, "%"))
		}
	}
	attributes, err := brackets.Split(strings.TrimPrefix(strings.TrimSpace(rest[end+1:]), ","))
	if err != nil {
		return fmt.Errorf("instruction %q: %w", name, err)
	}
	i.attributes = make(map[string]string, len(attributes))
	for _, a := range attributes {
		if key, value, found := strings.Cut(a, "="); found {
			i.attributes[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	c.instructions, c.named[name] = append(c.instructions, i), i
	if root {
		if c.root != nil {
			return fmt.Errorf("a second root, %q", name)
		}
		c.root = i
	}
	return nil
}

func (c *computation) finish(operands map[*instruction][]string) error {
	if len(c.instructions) == 0 {
		return fmt.Errorf("computation %q is empty", c.name)
	}
	if c.root == nil {
		c.root = c.instructions[len(c.instructions)-1]
	}
	var all []*instruction
	for _, i := range c.instructions {
		for _, name := range operands[i] {
			o := c.named[name]
			if o == nil && strings.Contains(name, "#") {
				var made []*instruction
				if o, made = c.elementOf(name, i.line); o != nil {
					all = append(all, made...)
				}
			}
			if o == nil {
				return fmt.Errorf("instruction %q (line %d): its operand %q is not an instruction of computation %q", i.name, i.line, name, c.name)
			}
			i.operands = append(i.operands, o)
		}
		all = append(all, i)
	}
	c.instructions = all
	byNumber := make([]*instruction, len(c.parameters))
	for _, p := range c.parameters {
		if p.number >= len(byNumber) || byNumber[p.number] != nil {
			return fmt.Errorf("computation %q: parameter %d: expected each number below %d once", c.name, p.number, len(byNumber))
		}
		byNumber[p.number] = p
	}
	c.parameters = byNumber
	return nil
}

// "tuple#1#0" is an element of a tuple.
func (c *computation) elementOf(name string, line int) (*instruction, []*instruction) {
	parts := strings.Split(name, "#")
	of := c.named[parts[0]]
	if of == nil {
		return nil, nil
	}
	var made []*instruction
	for k, index := range parts[1:] {
		n, err := strconv.Atoi(index)
		if err != nil || n < 0 || n >= len(of.shape.parts) {
			return nil, nil
		}
		full := strings.Join(parts[:k+2], "#")
		e := c.named[full]
		if e == nil {
			e = &instruction{name: full, opcode: "get-tuple-element", shape: of.shape.parts[n], operands: []*instruction{of},
				attributes: map[string]string{"index": index}, line: line}
			c.named[full] = e
			made = append(made, e)
		}
		of = e
	}
	return of, made
}

func (r *reader) resolve() error {
	if r.m.entry == nil {
		return errors.New("the module has no entry computation")
	}
	for _, c := range r.m.order {
		if err := c.ordered(); err != nil {
			return err
		}
	}
	return nil
}

func (c *computation) ordered() error {
	placed := make(map[*instruction]bool, len(c.instructions))
	for _, i := range c.instructions {
		for _, o := range i.operands {
			if !placed[o] {
				return fmt.Errorf("computation %q: instruction %q (line %d) comes before its operand %q", c.name, i.name, i.line, o.name)
			}
		}
		placed[i] = true
	}
	return nil
}

func (m *module) called(i *instruction, attribute string) ([]*computation, error) {
	value, found := i.attributes[attribute]
	if !found {
		return nil, nil
	}
	var list []*computation
	for name := range strings.SplitSeq(strings.Trim(value, "{}"), ",") {
		name = strings.TrimPrefix(strings.TrimSpace(name), "%")
		c := m.computations[name]
		if c == nil {
			return nil, fmt.Errorf("instruction %q (line %d): %s=%s: no such computation", i.name, i.line, attribute, name)
		}
		list = append(list, c)
	}
	return list, nil
}
