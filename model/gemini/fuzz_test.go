package gemini

import (
	"encoding/json"
	"io"
	"testing"

	"hone/model"
)

// FuzzRead tests that no response makes the reader panic or passes as complete
// without a finish reason, and that the journal does not change what is sent
// back.
func FuzzRead(f *testing.F) {
	f.Add("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"ü\"}]},\"finishReason\":\"STOP\"}]}\r\n\r\n")
	f.Add("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\",\"thoughtSignature\":\"bQ==\"}," +
		"{\"functionCall\":{\"args\":\"x\"}},{\"x\":1}]},\"finishReason\":\"X\"}]}\n\n")
	f.Add("data: {\"candidates\":[{}]}\n\n[{\"error\":{\"code\":503,\"details\":[{\"retryDelay\":\"1s\"}]}}]")
	f.Add("data: {\"promptFeedback\":{\"blockReason\":\"X\"}}")
	f.Fuzz(func(t *testing.T, body string) {
		r, ended := &reader{}, false
		frames := model.Framer{Event: func(_ string, data []byte) {
			if !ended {
				_, err := r.Add(data)
				ended = err != nil && err != io.EOF
			}
		}}
		frames.Write([]byte(body))
		reply, err := r.Reply(false)
		if frames.End() || ended || err != nil {
			return
		}
		if reply.Finish == "" || reply.Detail == "" {
			t.Fatalf("read as %+v", reply)
		}
		recorded, err := json.Marshal(reply)
		if err != nil {
			t.Fatal(err)
		}
		var restored model.Reply
		if err := json.Unmarshal(recorded, &restored); err != nil {
			t.Fatal(err)
		}
		if a, b := sent(t, reply), sent(t, restored); a != b {
			t.Errorf("sent back as\n%s\nand, from the journal, as\n%s", a, b)
		}
	})
}

func sent(t *testing.T, reply model.Reply) string {
	t.Helper()
	body, err := model.EncodeJSON(encode("gemini-3", model.Request{
		Messages: []model.Message{{Role: model.Assistant, Parts: reply.Parts}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
