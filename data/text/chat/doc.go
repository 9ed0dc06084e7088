// Package chat writes conversations as the text that a language model was trained on, by the model's chat template:
//
//	tokens, err := text.Open(folder)
//	template, err := chat.New(tokens)
//	prompt, err := template.Apply([]chat.Message{{Role: "user", Content: "hello"}}, true)
//	ids, err := tokens.EncodeText(text.Input{Text: prompt, Bare: true})
//
// It renders the part of Jinja that the hub's templates use, as transformers' apply_chat_template. Other constructs are
// errors, as are loops and texts without end.
package chat
