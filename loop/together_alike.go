package loop

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
)

// alike is a part of a run that must be the same in all processes.
type alike struct {
	what string // "Until"
	is   string // in messages
	key  string // what is compared
}

// ofAll lists what must be the same in all processes.
func (p *ranks[S, B]) ofAll() []alike {
	same := func(what string, is any) alike { text := fmt.Sprint(is); return alike{what, text, text} }
	begin := same("the step at which they begin", fmt.Sprintf("%d (%d samples, %v)", p.from.Steps, p.from.Samples, p.from.Time))
	begin.key = fmt.Sprintln(p.from.Steps, p.from.Samples, int64(p.from.Time), int64(p.from.Date))
	list := []alike{begin, same("Until", p.until), same("Keep", p.keep), same("SingleSteps", p.single), same("whether an earlier run was over", fmt.Sprint(p.endedBy != nil, " ", p.endedUntil))}
	for i := range p.tasks {
		list = append(list, alike{fmt.Sprintf("task %d", i+1), label(p.tasks[i].when, p.tasks[i].name), fmt.Sprintln(p.tasks[i].when)})
	}
	for i := range p.hooks {
		h := &p.hooks[i]
		is := h.String()
		if h.AtRank0 {
			is += " (AtRank0)"
		}
		list = append(list, alike{fmt.Sprintf("%s %d", h.kind, h.number), is, fmt.Sprintln(h.kind, h.When, h.Entry, h.AtRank0)})
	}
	return list
}

// setup is a number for what must be the same in all processes.
func (p *ranks[S, B]) setup() int64 {
	h := fnv.New32a()
	for _, x := range p.ofAll() {
		fmt.Fprint(h, x.key)
	}
	return int64(h.Sum32())
}

// differing is the error of processes whose setups differ, with the first difference.
func (p *ranks[S, B]) differing(a, b int) error {
	const where = "the processes do not run the same loop"
	failed := func(differ string) error {
		return p.errorAt(where, fmt.Errorf("ranks %d and %d differ in %s: all ranks are given the same settings; what only one is to do is a Callback with AtRank0", b, a, differ))
	}
	list := p.ofAll()
	const at = 8 // so many parts are compared at once
	for begin := 0; ; begin += at {
		var words [2*at + 1]int64
		for i := range at {
			v := p.rank
			if begin+i < len(list) {
				h := fnv.New32a()
				fmt.Fprint(h, list[begin+i].key)
				v |= (int64(h.Sum32()) + 1) << rankBits
			}
			words[2*i], words[2*i+1] = v, -v
		}
		words[2*at] = int64(len(list))
		if err := p.exchange("which part of their loops differs", words[:]); err != nil {
			return err
		}
		for i := range at {
			most, least := words[2*i], -words[2*i+1]
			if most>>rankBits == least>>rankBits {
				continue
			}
			a, b = int(most&(1<<rankBits-1)), int(least&(1<<rankBits-1))
			var own error
			if begin+i < len(list) {
				own = errors.New(list[begin+i].what + "\x1f" + list[begin+i].is)
			}
			var said [2]string
			for n, rank := range []int{a, b} {
				var err error
				if said[n], err = p.tell(rank, own); err != nil {
					return err
				}
			}
			what, is, _ := strings.Cut(said[0], "\x1f") // of the one that has it
			_, other, has := strings.Cut(said[1], "\x1f")
			if !has {
				other = "none"
			}
			return failed(fmt.Sprintf("%s: rank %d has %s, rank %d %s", what, a, is, b, other))
		}
		if int64(begin+at) >= words[2*at] {
			return failed("the order or number of their tasks and callbacks")
		}
	}
}
