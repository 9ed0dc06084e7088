package loop

import (
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/internal/agreed"
)

func (p *ranks[S, B]) ofAll() []agreed.Setting {
	same := func(what string, is any) agreed.Setting {
		text := fmt.Sprint(is)
		return agreed.Setting{What: what, Text: text, Key: text}
	}
	begin := same("the step at which they begin", fmt.Sprintf("%d (%d samples, %v)", p.from.Steps, p.from.Samples, p.from.Time))
	begin.Key = fmt.Sprintln(p.from.Steps, p.from.Samples, int64(p.from.Time), int64(p.from.Date))
	list := []agreed.Setting{begin, same("Until", p.until), same("Keep", p.keep), same("SingleSteps", p.single),
		same("whether an earlier run was over", p.endedBy != nil)}
	for i := range p.tasks {
		t := &p.tasks[i]
		list = append(list, agreed.Setting{What: fmt.Sprintf("task %d", i+1), Text: t.String(), Key: fmt.Sprintln(t.when)})
	}
	for i := range p.hooks {
		h := &p.hooks[i]
		text := h.String()
		if h.AtRank0 {
			text += " (AtRank0)"
		}
		list = append(list, agreed.Setting{What: fmt.Sprintf("%s %d", h.kind(), h.number), Text: text, Key: fmt.Sprintln(h.kind(), h.When, h.Entry, h.AtRank0)})
	}
	return list
}

func (p *ranks[S, B]) differing(a, b int) error {
	differ, err := agreed.Difference(p.ofAll(), a, b, func(own string) (first, second string, err error) {
		return p.tellBoth(a, b, errors.New(own))
	})
	if err != nil {
		return err
	}
	return p.errorAt("the processes do not run the same loop", fmt.Errorf("ranks %d and %d differ in %s: "+
		"give all ranks the same settings; for work of only one rank, use a Callback with AtRank0", min(a, b), max(a, b), differ))
}
