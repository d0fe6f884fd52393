package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// emptyBody is the SHA-256 of nothing: only GET is used.
const emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// signer signs requests the way S3 asks for (AWS Signature Version 4).
type signer struct{ access, secret, region string }

func (k signer) sign(request *http.Request, now time.Time) {
	moment, day := now.UTC().Format("20060102T150405Z"), now.UTC().Format("20060102")
	request.Header.Set("X-Amz-Date", moment)
	request.Header.Set("X-Amz-Content-Sha256", emptyBody)
	const signed = "host;x-amz-content-sha256;x-amz-date"
	canonical := strings.Join([]string{
		request.Method, request.URL.EscapedPath(), request.URL.RawQuery,
		"host:" + request.URL.Host + "\nx-amz-content-sha256:" + emptyBody + "\nx-amz-date:" + moment + "\n",
		signed, emptyBody,
	}, "\n")
	scope := day + "/" + k.region + "/s3/aws4_request"
	hash := sha256.Sum256([]byte(canonical))
	text := "AWS4-HMAC-SHA256\n" + moment + "\n" + scope + "\n" + hex.EncodeToString(hash[:])
	key := []byte("AWS4" + k.secret)
	for _, part := range []string{day, k.region, "s3", "aws4_request"} {
		key = mac(key, part)
	}
	request.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s",
		k.access, scope, signed, hex.EncodeToString(mac(key, text))))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// escapePath escapes everything but S3's unreserved characters and the slashes.
func escapePath(path string) string {
	var escaped strings.Builder
	for _, b := range []byte(path) {
		if b == '/' || b == '-' || b == '_' || b == '.' || b == '~' || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z' {
			escaped.WriteByte(b)
		} else {
			fmt.Fprintf(&escaped, "%%%02X", b)
		}
	}
	return escaped.String()
}
