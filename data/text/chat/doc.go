// Package chat writes conversations as the text that a language model was trained on, by the model's chat template.
// The text has the special tokens: encode it as a Bare text.Input.
//
// It renders the part of Jinja that the hub's templates use, as transformers. Other constructs are errors, as are
// endless loops and texts.
package chat
