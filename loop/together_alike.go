package loop

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strings"
)

// alike is a part of a run that must be equal in all processes.
type alike struct{ what, text, key string }

func (p *ranks[S, B]) ofAll() []alike {
	same := func(what string, is any) alike { text := fmt.Sprint(is); return alike{what, text, text} }
	begin := same("the step at which they begin", fmt.Sprintf("%d (%d samples, %v)", p.from.Steps, p.from.Samples, p.from.Time))
	begin.key = fmt.Sprintln(p.from.Steps, p.from.Samples, int64(p.from.Time), int64(p.from.Date))
	list := []alike{begin, same("Until", p.until), same("Keep", p.keep), same("SingleSteps", p.single),
		same("whether an earlier run was over", p.endedBy != nil)}
	for i := range p.tasks {
		t := &p.tasks[i]
		list = append(list, alike{fmt.Sprintf("task %d", i+1), t.String(), fmt.Sprintln(t.when)})
	}
	for i := range p.hooks {
		h := &p.hooks[i]
		text := h.String()
		if h.AtRank0 {
			text += " (AtRank0)"
		}
		list = append(list, alike{fmt.Sprintf("%s %d", h.kind(), h.number), text, fmt.Sprintln(h.kind(), h.When, h.Entry, h.AtRank0)})
	}
	return list
}

func (p *ranks[S, B]) setup() int64 {
	text := ""
	for _, x := range p.ofAll() {
		text += x.key
	}
	return hashOf(text)
}

func hashOf(text string) int64 {
	h := fnv.New32a()
	h.Write([]byte(text))
	return int64(h.Sum32())
}

func (p *ranks[S, B]) differing(a, b int) error {
	list := p.ofAll()
	for i := 0; ; i++ {
		var own error
		if i < len(list) {
			own = fmt.Errorf("%x\x1f%s\x1f%s", hashOf(list[i].key), list[i].text, list[i].what)
		}
		first, second, err := p.tellBoth(a, b, own)
		if err != nil {
			return err
		}
		key, first, _ := strings.Cut(first, "\x1f")
		otherKey, second, _ := strings.Cut(second, "\x1f")
		differ := "the order or number of their tasks and callbacks"
		switch {
		case key == otherKey && key != "":
			continue
		case first < second: // first the part that the other may lack
			first, second, a, b = second, first, b, a
			fallthrough
		case key != otherKey:
			has, what, _ := strings.Cut(first, "\x1f")
			other, _, _ := strings.Cut(second, "\x1f")
			differ = fmt.Sprintf("%s: rank %d has %s, rank %d %s", what, a, has, b, cmp.Or(other, "none"))
		}
		return p.errorAt("the processes do not run the same loop", fmt.Errorf("ranks %d and %d differ in %s: "+
			"give all ranks the same settings; for work of only one rank, use a Callback with AtRank0", min(a, b), max(a, b), differ))
	}
}
