/*
 * jwt_vectors: what tests of tokens read: the keys and tokens of RFC 7515, appendices A.1 to A.3,
 * and tokens of a player, signed by PyCA's cryptography with keys that were thrown away.
 */
#ifndef RUNTIME_JWT_JWT_VECTORS_H
#define RUNTIME_JWT_JWT_VECTORS_H

/* RFC 7515. Their claims are no player's: they expired in 2011, and have no sub or aud. */
#define RFC_SECRET                                                                                 \
    "{\"kty\":\"oct\",\"k\":\"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS"  \
    "4hcgUuTwjAzZr1Z9CAow\"}"
#define RFC_RSA                                                                                    \
    "{\"kty\":\"RSA\",\"n\":\"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-V"  \
    "aw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9w"         \
    "Gzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMT"         \
    "BQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kz"         \
    "k2PAcDTW9gb54h4FRWyuXpoQ\",\"e\":\"AQAB\"}"
#define RFC_EC                                                                                     \
    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","     \
    "\"y\":\"x_F"                                                                                  \
    "EzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}"
#define RFC_HS256                                                                                  \
    "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODA"         \
    "sDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_w"         \
    "W1gFWFOEjXk"
#define RFC_RS256                                                                                  \
    "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGF"         \
    "tcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu"         \
    "3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdi"         \
    "uB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--x"         \
    "i12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5A"         \
    "XLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
#define RFC_ES256                                                                                  \
    "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGF"         \
    "tcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw"         \
    "5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"

/* Of the player "ada", for the audiences "shop" and "game", by "https://id.example". */
#define PLAYER_ISSUED_S  1700000000u
#define PLAYER_EXPIRES_S 1700003600u
#define PLAYER_SECRET                                                                              \
    "{\"kty\":\"oct\",\"kid\":\"mac-1\",\"k\":\"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-"     \
    "1qS0gZH"                                                                                      \
    "75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow\"}"
#define PLAYER_RSA                                                                                 \
    "{\"kty\":\"RSA\",\"kid\":\"rsa-1\",\"use\":\"sig\",\"alg\":\"RS256\",\"n\":"                  \
    "\"kh8jrTtJ4ounfnd2d_vujidGr7"                                                                 \
    "2uY8qM6fN9d_dyxqYy-wg64FOuSIRDOmlL44ryalwXEa7bjhNar4exAdiVns26H0riEUouBgRiZHJ34C9K3Y"         \
    "KGm8_QBSRzOHhm75VgI-Q0YCpK9_hw2U9VUwSDQUpt51n3BwhajaEALrQue7z3kSQRu0Jz9Imb3YNx26IFw7"         \
    "CrnGI8GOBiArcYnN854_ekAIuRLcWwPwNp1hVylP41YVVKJ4S3081LqZK2l5leuWeTFwIsIf4EFoCWgoKI9q"         \
    "S5eVxJGz1e4L33JIGs8AKkKsy_VjYTlBnMLndMi2tVfEPVZjtQ1aCV87R3OssTAQ\",\"e\":\"AQAB\"}"
#define PLAYER_EC                                                                                  \
    "{\"kty\":\"EC\",\"kid\":\"ec-1\",\"crv\":\"P-256\",\"x\":"                                    \
    "\"IueDfJaU78Kc6J0dHFFWonWRmnwey7UqudVrgdHX"                                                   \
    "cM8\",\"y\":\"zyq4cs1zSlALo_nQKMssA4vD8hydnpgzGFZTReM3kXk\"}"
#define WEAK_RSA                                                                                   \
    "{\"kty\":\"RSA\",\"kid\":\"weak\",\"n\":\"vynIJW_frWlZQnO4ul_0LiW-SP6wLA3V_"                  \
    "Q6k4cHRVrjdXFs3L9xOz"                                                                         \
    "xPfucFGyHNQeJUN2bqaY6-m3AuAyUdLEm5vhZrU_7_DWMaAtVdXdI_dFdjyjE36Zy6FiMTtOo3drcyTRFW8i"         \
    "PD1ZUEs6XrbAVRmTJlVcbnr86CXwIQV35k\",\"e\":\"AQAB\"}"
#define PLAYER_CLAIMS                                                                              \
    "{\"iss\":\"https://"                                                                          \
    "id.example\",\"aud\":[\"shop\",\"game\"],\"sub\":\"ada\",\"iat\":1700000000,\"exp\""          \
    ":1700003600}"
#define PLAYER_HS256                                                                               \
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6Im1hYy0xIn0.eyJpc3MiOiJodHRwczovL2lkLmV4"         \
    "YW1wbGUiLCJhdWQiOlsic2hvcCIsImdhbWUiXSwic3ViIjoiYWRhIiwiaWF0IjoxNzAwMDAwMDAwLCJleHAi"         \
    "OjE3MDAwMDM2MDB9.q-kfVROspXGEw7lPiLtGZbowJrh2AothAEwgR3Z7FH4"
#define PLAYER_RS256                                                                               \
    "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6InJzYS0xIn0.eyJpc3MiOiJodHRwczovL2lkLmV4"         \
    "YW1wbGUiLCJhdWQiOlsic2hvcCIsImdhbWUiXSwic3ViIjoiYWRhIiwiaWF0IjoxNzAwMDAwMDAwLCJleHAi"         \
    "OjE3MDAwMDM2MDB9.T2UjG-_0CZLU2QI37J1J1L9e3mtAhNaJ9y0Sc0F0S7Kb9Oy_RcvJd51ecEMnvXytoEt"         \
    "dcknR25jRNr8s30qmgFEYAiTKAWfPkZZmXzrFIqBjW4xyXkl6h9IjVqGuU39AZdwBT5Emx5hTOjdht_pye9Z"         \
    "bSmZj54A_d8WDM-sy7f_EPxuhC1fEqXfzdIGAEBR8NrsNIS7elT6YkDpy68XjMhvYf3gxtibHVOfpnh6gyMF"         \
    "q7ZysPlQOkhZALDzxjNz38UAHBqVxJpEzr2VhLGwL5ByMbvR6MjodmTc5H9d_bTUrDTKdvSHgKoVQi-3SMWU"         \
    "D7bV1gKaF7io6dMa3NDPYVQ"
#define PLAYER_ES256                                                                               \
    "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImVjLTEifQ.eyJpc3MiOiJodHRwczovL2lkLmV4Y"         \
    "W1wbGUiLCJhdWQiOlsic2hvcCIsImdhbWUiXSwic3ViIjoiYWRhIiwiaWF0IjoxNzAwMDAwMDAwLCJleHAiO"         \
    "jE3MDAwMDM2MDB9.Uj4L3bdTG5q-SEmIrTKSesEwnzUCpDYziPlXQt8koWgupGl_V8Kv9Tm5xDor0Wy-aQ5i"         \
    "fL7aJzorvKA7USaFpw"

#endif
