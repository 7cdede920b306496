package hone

import (
	"strings"

	"hone/check"
	"hone/internal/reply"
	"hone/model"
)

// Text returns a prompt: one message of the user, with one part for each text.
func Text(texts ...string) []model.Message {
	m := model.Message{Role: model.User}
	for _, text := range texts {
		m.Parts = append(m.Parts, model.Part{Text: text})
	}
	return []model.Message{m}
}

// UsableText returns the text of a reply to [Run.Ask], without the model's reasoning
// and the empty lines after it. If the reply did not end normally, such as at its
// output limit (ruling G3), or has no text, the round returns the findings instead,
// which tell the model what to send. Otherwise they are nil.
func UsableText(got model.Reply) (string, []check.Finding) {
	if cause := reply.EndProblem(got); cause != "" {
		return "", check.Unusable(cause + ".")
	}
	text := reply.Answer(got.Text(), nil)
	if len(text) < len(got.Text()) {
		text = strings.TrimLeft(text, "\r\n")
	}
	if strings.TrimSpace(text) == "" {
		return "", check.Unusable("it was empty.")
	}
	return text, nil
}
