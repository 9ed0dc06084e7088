package chat

import (
	"fmt"
	"time"

	"github.com/lazo-ml/lazo/data/text"
)

// Message is part of a conversation.
type Message struct {
	// Role is the author: "system", "user" or "assistant".
	Role    string
	Content string
}

// Template is a chat template. It is safe for concurrent use.
type Template struct {
	body    []node
	special map[string]string
	now     func() time.Time
}

// New returns a tokenizer's template. Without one it is an error.
func New(t *text.Tokenizer) (*Template, error) {
	source := t.ChatTemplate()
	if source == "" {
		return nil, fmt.Errorf("chat: the tokenizer has no chat template")
	}
	special := map[string]string{}
	for _, role := range []string{"bos", "eos", "unk", "pad", "cls", "sep", "mask"} {
		if id, ok := t.Special(role); ok {
			special[role+"_token"], _ = t.Token(id)
		}
	}
	return parse(source, special)
}

func parse(source string, special map[string]string) (*Template, error) {
	body, err := parseTemplate(source)
	if err != nil {
		return nil, fmt.Errorf("chat: %w", err)
	}
	return &Template{body: body, special: special, now: time.Now}, nil
}

// Apply returns a conversation's text. With generate it ends where the model's answer begins. The template decides
// which roles may follow each other, and returns errors for others.
func (t *Template) Apply(messages []Message, generate bool) (string, error) {
	all := &array{as: list}
	for _, m := range messages {
		d := newDict()
		d.set("role", m.Role)
		d.set("content", m.Content)
		all.items = append(all.items, d)
	}
	r := &renderer{now: t.now}
	top := &scope{names: map[string]any{"messages": all, "tools": nil, "documents": nil, "add_generation_prompt": generate}}
	for name, token := range t.special {
		top.names[name] = token
	}
	if err := r.run(t.body, top); err != nil {
		return "", fmt.Errorf("chat: the template: %w", err)
	}
	return r.out.String(), nil
}
