// Package pretrained trains and uses models that others trained: folders of the Hugging Face hub, with config.json and
// model.safetensors.
//
//	base, err := pretrained.Open(ctx, folder)
//	network := base.Classifier(10)
//	model, err := flaxlike.New(ctx, network, flaxlike.WithLoss("sparse_categorical_crossentropy"))
//	…
//	err = network.Save("tuned", model) // for transformers' from_pretrained
//
// [Network.LoRA] trains additions to frozen weights, and reads and writes adapters of peft.
//
// Architectures are BERT and MiniLM, RoBERTa and XLM-RoBERTa, DistilBERT, and MPNet; Llama and SmolLM, Mistral, Qwen 2
// and Qwen 3, Gemma 2 and 3 for texts, and GPT-2; T5; ViT and ResNet; CLIP; Whisper. Outputs and gradients equal
// those of transformers up to rounding. docs/pretrained.md shows how to add one.
package pretrained
