// Package chat writes conversations as the text that a language model was trained on, by the model's chat template:
//
//	tokens, err := text.Open(folder)
//	template, err := chat.New(tokens)
//	prompt, err := template.Apply([]chat.Message{{Role: "user", Content: "hello"}}, true)
//	all, err := tokens.EncodeText(text.Input{Text: prompt, Bare: true})
//
// A template is Jinja, as in transformers' apply_chat_template. Package chat has the parts that templates of the hub use.
// Others are errors, as are loops and texts without end.
package chat
