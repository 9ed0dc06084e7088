package pretrained

// sentenceFiles are those of sentence-transformers.
var sentenceFiles = []string{"modules.json", "config_sentence_transformers.json", "sentence_bert_config.json", "1_Pooling/config.json"}
