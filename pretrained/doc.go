// Package pretrained trains and uses models that others trained: folders of the Hugging Face hub, with config.json
// and model.safetensors.
//
//	base, err := pretrained.Open(ctx, folder)
//	model, err := flaxlike.New(ctx, base.Classifier(10), flaxlike.WithLoss("sparse_categorical_crossentropy"))
//
// [Network.LoRA] trains additions to frozen weights. [Network.Save] writes a folder for transformers.
//
// Architectures are BERT and MiniLM, RoBERTa and XLM-RoBERTa, DistilBERT, and MPNet; Llama and SmolLM, Mistral, Qwen
// 2 and Qwen 3, Gemma 2 and 3 for texts, and GPT-2; T5; ViT and ResNet; CLIP; Whisper. Outputs and gradients equal
// those of transformers up to rounding.
package pretrained
